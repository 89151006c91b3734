import { DocumentFault, type DocumentProblem, Place, shown } from '../../shared/problem.ts'
import {
  type Address,
  type AddressRange,
  AddressRanges,
  parseAddressRange,
} from '../../wire/address-ranges.ts'
import { dayNumber } from './calendar.ts'

/** The addresses of an agent, as its vendor publishes them. */
export interface PublishedRanges {
  /** As they were written. */
  readonly prefixes: readonly string[]
  /** The list may be incomplete: a client at another address may still be the agent. */
  readonly isPartial: boolean
  readonly source: string
  /** The day of the list, `YYYY-MM-DD`. */
  readonly date: string
}

/** Throws a DocumentFault with all problems. */
export function parsePublishedRanges(value: unknown): PublishedRanges {
  const problems: DocumentProblem[] = []
  const published = readPublishedRanges(Place.of(value, problems))
  if (published === null || problems.length > 0) throw new DocumentFault('RANGES_INVALID', problems)
  return published
}

/** `null`: it was refused, and its place has the problem. */
export function readPublishedRanges(place: Place): PublishedRanges | null {
  const members = place.members(['prefixes', 'partial', 'source', 'date'])
  const source = members.get('source')?.text('the source of the ranges') ?? null
  const date = readDate(members.get('date'))
  const isPartial = members.get('partial')?.boolean() ?? false
  const prefixes = readPrefixes(members.get('prefixes'))
  if (!members.has('prefixes') || !members.has('source') || !members.has('date'))
    return place.refuse('needs `prefixes`, `source` and `date`')
  return prefixes === null || source === null || date === null ? null : { prefixes, isPartial, source, date }
}

/**
 * Whether the address can belong to one client on the public internet. Private and local addresses are used
 * everywhere. Behind a proxy that is not configured as trusted, all clients would have the address of that
 * proxy.
 */
export function isPublic(address: Address): boolean {
  return address.family !== 0 && !NOT_PUBLIC.has(address)
}

export function readDate(place: Place | undefined): string | null {
  const date = place?.text('a day, like 2026-11-21') ?? null
  if (date === null || dayNumber(date) !== null) return date
  return place!.refuse(`is ${shown(date)}; expected a day, like 2026-11-21`)
}

/** `null`: a range was refused, or the whole list. */
function readPrefixes(place: Place | undefined): readonly string[] | null {
  if (place === undefined) return null
  const items = place.items()
  if (items.length > PREFIXES_MAX)
    return place.refuse(`has ${items.length} ranges; at most ${PREFIXES_MAX} are allowed`)
  const taken = new Set<string>()
  const prefixes: string[] = []
  let widest = 0
  for (const item of items) {
    const range = readPrefix(item, taken)
    if (range === null) continue
    prefixes.push(item.value as string)
    widest += 2 ** (shortest(range) - range.length)
  }
  if (widest > WIDEST_MAX)
    return place.refuse(
      `covers more addresses than ${WIDEST_MAX} of the widest ranges (${WIDEST}); no single vendor has that many`,
    )
  return prefixes.length === items.length && prefixes.length > 0 ? prefixes : null
}

function readPrefix(place: Place, taken: Set<string>): AddressRange | null {
  const text = place.text('an address range, like 192.0.2.0/24')
  if (text === null) return null
  const range = parseAddressRange(text)
  if (range === null || (range.isIpv4 && text.includes(':')))
    return place.refuse(`is ${shown(text)}; expected an address or a range, like 192.0.2.0/24`)
  const { length, written, first } = range
  if (first.some((word, i) => word !== written[i]))
    return place.refuse(
      `is ${shown(text)}, which has bits set after the first ${length}; write the first address of the range`,
    )
  if (length < shortest(range))
    return place.refuse(`is ${shown(text)}; the widest allowed ranges are ${WIDEST}`)
  if (NOT_PUBLIC.touches(range))
    return place.refuse(
      `is ${shown(text)}, which is not on the public internet, so it identifies no agent; use the condition \`address\` in a rule instead`,
    )
  const key = `${first[0]} ${first[1]} ${first[2]} ${first[3]} ${length}`
  if (taken.has(key)) return place.refuse(`is ${shown(text)}, which is listed twice`)
  taken.add(key)
  return range
}

function shortest({ isIpv4 }: AddressRange): number {
  return isIpv4 ? IPV4_LENGTH_MIN : IPV6_LENGTH_MIN
}

/** The largest ranges that registries give to one network. Apple has published 17.0.0.0/8 for its crawler. */
const IPV4_LENGTH_MIN = 8
const IPV6_LENGTH_MIN = 19
const WIDEST = `/${IPV4_LENGTH_MIN} of IPv4 and /${IPV6_LENGTH_MIN} of IPv6`
/** For all ranges of a list together; otherwise many narrow ones could cover the whole internet. */
const WIDEST_MAX = 2
/** The longest known list is that of AhrefsBot, with about 10,000 ranges. */
const PREFIXES_MAX = 20_000
/**
 * RFC 6890 and 5771; of IPv6, everything except the assigned space (2000::/3). Example ranges (192.0.2.0/24)
 * are allowed: they have no owner.
 */
const NOT_PUBLIC: Readonly<AddressRanges> = new AddressRanges(
  [
    '0.0.0.0/8',
    '10.0.0.0/8',
    '100.64.0.0/10',
    '127.0.0.0/8',
    '169.254.0.0/16',
    '172.16.0.0/12',
    '192.168.0.0/16',
    '198.18.0.0/15',
    '224.0.0.0/3',
    '::/3',
    '4000::/2',
    '8000::/1',
  ].map((range) => parseAddressRange(range)!),
)
