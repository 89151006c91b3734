import { isUtf8 } from 'node:buffer'
import { type PublishedRanges, parsePublishedRanges } from '../../classify/known/published-ranges.ts'
import { parseAddressRange } from '../../wire/address-ranges.ts'
import { shapeProblem } from '../../wire/json-shape.ts'

/**
 * Reads address ranges from a document in a format that vendors publish: JSON after the IETF draft
 * (`{prefixes: [{ipv4Prefix: …}]}`, used by Google, Microsoft, OpenAI and others), a JSON list of strings,
 * several named lists, or plain text with one range a line. `null`: another format.
 */
export function rangesIn(body: Buffer): readonly string[] | null {
  if (!isUtf8(body)) return null
  const text = body.toString('utf8').replace(/^\uFEFF/, '')
  if (!/^\s*[[{]/.test(text)) return linesIn(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  return shapeProblem(value) === null ? listsIn(value) : null
}

/** Applies the rules of bundled lists. Throws a DocumentFault. */
export function publishedRanges(ranges: readonly string[], url: string, date: string): PublishedRanges {
  const source = url.replace(/^https?:\/\//, '').slice(0, SOURCE_LENGTH_MAX)
  return parsePublishedRanges({ prefixes: distinct(ranges), source, date })
}

function listsIn(value: unknown): readonly string[] | null {
  if (Array.isArray(value)) return itemsIn(value)
  // Other members, such as a creation time or a version, are not lists.
  const lists = Object.values(value as object).filter(
    (member) => typeof member === 'object' && member !== null,
  )
  const found: string[] = []
  for (const list of lists) {
    const items = Array.isArray(list) ? itemsIn(list) : null
    if (items === null) return null
    for (const item of items) found.push(item)
  }
  return lists.length === 0 ? null : found
}

/**
 * `null`: an item is not a range. The document may be a cloud's list of all its services, which describes no
 * agent.
 */
function itemsIn(list: readonly unknown[]): readonly string[] | null {
  const found: string[] = []
  for (const item of list) {
    const text = typeof item === 'string' ? item : memberIn(item)
    if (text === null) return null
    found.push(text.trim())
  }
  return found
}

function memberIn(item: unknown): string | null {
  if (typeof item !== 'object' || item === null) return null
  const named = Object.entries(item).filter(([name]) => MEMBERS.has(name))
  const value = named.length === 1 ? named[0]![1] : null
  return typeof value === 'string' ? value : null
}

/** `null`: the first line is not an address range. */
function linesIn(text: string): readonly string[] | null {
  const lines = text.split('\n', LINES_MAX).map((line) => line.replace(/[#;].*/, '').trim())
  const said = lines.filter((line) => line !== '')
  return said.length > 0 && parseAddressRange(said[0]!) === null ? null : said
}

/** Vendors often list an address once per use, so duplicates are not an error. */
function distinct(ranges: readonly string[]): readonly string[] {
  const known = new Set<string>()
  return ranges.filter((text) => {
    const range = parseAddressRange(text)
    const key = range === null ? text : `${range.first.join()} ${range.length}`
    if (known.has(key)) return false
    known.add(key)
    return true
  })
}

const MEMBERS: ReadonlySet<string> = new Set(['ipv4Prefix', 'ipv6Prefix', 'ip_address'])
const LINES_MAX = 50_000
const SOURCE_LENGTH_MAX = 300
