import { DocumentFault, type DocumentProblem, Place, shown } from '../../shared/problem.ts'
import {
  type Address,
  type AddressRange,
  AddressRanges,
  parseAddressRange,
} from '../../wire/address-ranges.ts'
import { dayNumber } from './calendar.ts'

/** The addresses an agent has, as its vendor lets people know. */
export interface PublishedRanges {
  /** As they were written. */
  readonly prefixes: readonly string[]
  /** It is not known to have all of them: who is at another address may still be who he says. */
  readonly isPartial: boolean
  readonly source: string
  /** The day on which it was so, `YYYY-MM-DD`. */
  readonly date: string
}

/** Throws a DocumentFault with everything that is wrong. */
export function parsePublishedRanges(value: unknown): PublishedRanges {
  const problems: DocumentProblem[] = []
  const published = readPublishedRanges(Place.of(value, problems))
  if (published === null || problems.length > 0) throw new DocumentFault('RANGES_INVALID', problems)
  return published
}

/** `null`: it was refused, and its place knows why. */
export function readPublishedRanges(place: Place): PublishedRanges | null {
  const members = place.members(['prefixes', 'partial', 'source', 'date'])
  const source = members.get('source')?.text('where it was found') ?? null
  const date = readDate(members.get('date'))
  const isPartial = members.get('partial')?.boolean() ?? false
  const prefixes = readPrefixes(members.get('prefixes'))
  if (!members.has('prefixes') || !members.has('source') || !members.has('date'))
    return place.refuse('needs `prefixes`, `source` and `date`')
  return prefixes === null || source === null || date === null ? null : { prefixes, isPartial, source, date }
}

/**
 * Whether it can be one client's for all to see. Private addresses and those of this machine are what everybody has: a
 * proxy in front, of which nobody has told us, would lend them to all of its clients.
 */
export function isPublic(address: Address): boolean {
  return address.family !== 0 && !NOT_PUBLIC.has(address)
}

function readDate(place: Place | undefined): string | null {
  const date = place?.text('a day, like 2026-11-21') ?? null
  if (date === null || dayNumber(date) !== null) return date
  return place!.refuse(`is ${shown(date)}; it takes a day, like 2026-11-21`)
}

/** `null`: one of them was refused, or all together. */
function readPrefixes(place: Place | undefined): readonly string[] | null {
  if (place === undefined) return null
  const items = place.items()
  if (items.length > PREFIXES_MAX)
    return place.refuse(`has ${items.length} ranges; at most ${PREFIXES_MAX} can be a list`)
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
      `holds more than ${WIDEST_MAX} of the widest ranges would (${WIDEST}): that many are no one vendor's`,
    )
  return prefixes.length === items.length && prefixes.length > 0 ? prefixes : null
}

function readPrefix(place: Place, taken: Set<string>): AddressRange | null {
  const text = place.text('a range of addresses, like 192.0.2.0/24')
  if (text === null) return null
  const range = parseAddressRange(text)
  if (range === null || (range.isIpv4 && text.includes(':')))
    return place.refuse(`is ${shown(text)}; it takes an address or a range, like 192.0.2.0/24`)
  const { length, written, first } = range
  if (first.some((word, i) => word !== written[i]))
    return place.refuse(
      `is ${shown(text)}, which has bits set behind the first ${length}: no range begins there`,
    )
  if (length < shortest(range)) return place.refuse(`is ${shown(text)}; the widest ranges are ${WIDEST}`)
  if (NOT_PUBLIC.touches(range))
    return place.refuse(
      `is ${shown(text)}, which is not on the public internet: many have it; \`address\` in a rule can ask for it`,
    )
  const key = `${first[0]} ${first[1]} ${first[2]} ${first[3]} ${length}`
  if (taken.has(key)) return place.refuse(`is ${shown(text)}, which is there twice`)
  taken.add(key)
  return range
}

function shortest({ isIpv4 }: AddressRange): number {
  return isIpv4 ? IPV4_LENGTH_MIN : IPV6_LENGTH_MIN
}

/** What registries give to one network at most; Apple has published 17.0.0.0/8 for its crawler. */
const IPV4_LENGTH_MIN = 8
const IPV6_LENGTH_MIN = 19
const WIDEST = `/${IPV4_LENGTH_MIN} of IPv4 and /${IPV6_LENGTH_MIN} of IPv6`
/** Of all ranges of a list together: else many narrow ones would be the whole internet. */
const WIDEST_MAX = 2
/** The longest that is known is that of AhrefsBot, of some 10,000. */
const PREFIXES_MAX = 20_000
/** RFC 6890 and 5771; of IPv6, all but what is given out (2000::/3). Examples (192.0.2.0/24) are nobody's. */
const NOT_PUBLIC = new AddressRanges(
  [
    ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
    ...['192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/3', '::/3', '4000::/2', '8000::/1'],
  ].map((range) => parseAddressRange(range)!),
)
