import { shownAddress } from '../../plane/privacy/address-form.ts'
import type { Principal } from '../http/access/principal.ts'
import { shownPath, shownUserAgent } from '../../plane/privacy/shown-path.ts'

/**
 * How much of the clients a principal sees in requests and events. `full`, with the scope `admin`: everything that is
 * stored. `reduced`, with any other scope: networks instead of addresses, and no path or User-Agent parts that look like
 * secrets. config/guide/authentication.md has the table.
 */
export type Sight = 'full' | 'reduced'

export function sightOf({ scopes }: Pick<Principal, 'scopes'>): Sight {
  return scopes.has('admin') ? 'full' : 'reduced'
}

/**
 * A request or an event as a principal of this sight sees it. Every answer about clients goes through this
 * function: lists, single records and streams. It finds members by name at any depth, so it also covers new
 * kinds of events.
 */
export function shownTo<Value>(sight: Sight, value: Value): Value {
  return sight === 'full' ? value : (reduced(value) as Value)
}

function reduced(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reduced)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const show = typeof member === 'string' ? SHOWN.get(name) : undefined
      return [name, show === undefined ? reduced(member) : show(member as string)]
    }),
  )
}

const SHOWN: ReadonlyMap<string, (text: string) => string> = new Map([
  ['address', shownAddress],
  ['path', shownPath],
  ['user_agent', shownUserAgent],
])
