import { isDeepStrictEqual } from 'node:util'
import * as z from 'zod'
import type { Arguments } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { answered, called } from '../access/ask-running.ts'

/** The policy of an app in a file that differs from the one in force. */
export interface PolicyChange {
  readonly action: 'policy'
  readonly id: string
  /** `null`: the app has no policy. */
  readonly before: unknown
  readonly after: unknown
  /** Of the policy in force. `null`: the app does not exist yet. */
  readonly etag: string | null
}

/** The policy in force of an app. */
export async function policyOf(given: Arguments, io: Io, id: string) {
  const path = `/v1/apps/${id}/policy`
  const { data, etag } = await answered(given, io, policyAnswer, { method: 'GET', path, body: null })
  return { document: data.source === 'default' ? null : data.policy, etag }
}

/** `wanted`: documents by the id of the app. `isNew`: the app does not exist yet. */
export async function policyChanges(
  given: Arguments,
  io: Io,
  wanted: ReadonlyMap<string, unknown>,
  isNew: (id: string) => boolean,
): Promise<readonly PolicyChange[]> {
  const changes: PolicyChange[] = []
  for (const [id, after] of wanted) {
    const { document: before, etag } = isNew(id) ? NONE : await policyOf(given, io, id)
    if (!isDeepStrictEqual(before, after)) changes.push({ action: 'policy', id, before, after, etag })
  }
  return changes
}

/** Throws a Fault if the policy was changed since the changes were planned. */
export async function putPolicy(given: Arguments, io: Io, { id, after, etag }: PolicyChange): Promise<void> {
  const path = `/v1/apps/${id}/policy`
  await called(given, io, policyAnswer, { method: 'PUT', path, body: after, ifMatch: etag ?? '*' })
}

/** For people. */
export function policyLines({ id, before, after }: PolicyChange): readonly string[] {
  const [from, to] = [partsOf(before), partsOf(after)]
  const lines = [...new Set([...from.keys(), ...to.keys()])].flatMap((name) => {
    const [old, now] = [from.get(name), to.get(name)]
    if (old === now) return []
    if (old === undefined) return [`    + ${name}: ${now}`]
    return now === undefined ? [`    - ${name}`] : [`    ~ ${name}: ${old} → ${now}`]
  })
  const order = [...to.keys()].filter((name) => from.has(name))
  const isMoved = !isDeepStrictEqual(
    order,
    [...from.keys()].filter((name) => to.has(name)),
  )
  return [`~ ${id}, policy`, ...lines, ...(isMoved ? ['    rules: in another order'] : [])]
}

/** What a document sets, as text: each rule, and its other members. */
function partsOf(document: unknown): ReadonlyMap<string, string> {
  const { rules = [], ...others } = (document ?? {}) as Readonly<Record<string, unknown>>
  const named = (rules as readonly { readonly name: string }[]).map(({ name, ...rule }) => {
    return [`rule "${name}"`, JSON.stringify(rule)] as const
  })
  return new Map([
    ...named,
    ...Object.entries(others).map(([name, value]) => [name, JSON.stringify(value)] as const),
  ])
}

const NONE = { document: null, etag: null }
const policyAnswer = z.object({ policy: z.unknown(), source: z.string() })
