import {
  type Address,
  type AddressRange,
  AddressRanges,
  parseAddressRange,
} from '../../wire/address-ranges.ts'
import { DAY_MS, dayNumber } from './calendar.ts'
import type { EvidenceSet } from './evidence.ts'
import { isPublic, type PublishedRanges } from './published-ranges.ts'
import type { Software, SoftwareId } from './software.ts'

/** The addresses that an agent is published to have. */
export interface AddressList {
  readonly software: Software
  readonly published: PublishedRanges
  readonly ranges: AddressRanges
  /** When it was read, in days since 1970. */
  readonly day: number
}

/** Whose list is which; never changed. A range of IPv4 takes 8 bytes, one of IPv6 takes 32. */
export class AddressLists {
  readonly #lists: ReadonlyMap<SoftwareId, AddressList>

  private constructor(lists: ReadonlyMap<SoftwareId, AddressList>) {
    this.#lists = lists
  }

  /** With pauses in between: a list of ten thousand takes some milliseconds. */
  static *compiling(all: readonly Software[]): Generator<undefined, AddressLists> {
    const byUrl = newestByUrl(all)
    const compiled = new Map<PublishedRanges, AddressRanges>()
    const lists = new Map<SoftwareId, AddressList>()
    for (const software of all) {
      const { ranges: own, rangesUrl } = software.verification
      const published = own ?? (rangesUrl === null ? undefined : byUrl.get(rangesUrl))
      if (published === undefined || software.kind !== 'agent') continue
      const ranges = compiled.get(published) ?? (yield* compilingRanges(published))
      compiled.set(published, ranges)
      lists.set(software.id, { software, published, ranges, day: dayNumber(published.date)! })
    }
    return new AddressLists(lists)
  }

  /** By the id: who was named by earlier signatures is judged by these. */
  of({ id }: Software): AddressList | null {
    return this.#lists.get(id) ?? null
  }

  /** Whose have it: for who wants to know. */
  with(address: Address): readonly AddressList[] {
    return [...this.#lists.values()].filter(({ ranges }) => ranges.has(address))
  }
}

/**
 * What the address of whoever claims to be the one with this list says of the claim, into `marks`; whether it says
 * anything. An address that is not known, and one that many have, says nothing. Nor is anybody a liar by a list that lacks
 * addresses, or may by now.
 */
export function markAddress(
  marks: EvidenceSet,
  { published, ranges, day }: AddressList,
  address: Address,
  nowMs: number,
): boolean {
  if (ranges.has(address)) {
    marks.add('address-published')
    return true
  }
  const ageDays = Math.floor(nowMs / DAY_MS) - day
  if (published.isPartial || ageDays < AGE_DAYS_MIN || ageDays > AGE_DAYS_MAX) return false
  if (!isPublic(address)) return false
  marks.add('address-foreign')
  return true
}

/** Those with one `ranges_url` have one list, which stands with one of them: if with more, the newest is meant. */
function newestByUrl(all: readonly Software[]): ReadonlyMap<string, PublishedRanges> {
  const byUrl = new Map<string, PublishedRanges>()
  for (const { verification } of all) {
    const { ranges, rangesUrl } = verification
    if (ranges === null || rangesUrl === null) continue
    const before = byUrl.get(rangesUrl)
    if (before === undefined || before.date < ranges.date) byUrl.set(rangesUrl, ranges)
  }
  return byUrl
}

function* compilingRanges({ prefixes }: PublishedRanges): Generator<undefined, AddressRanges> {
  const ranges: AddressRange[] = []
  for (const prefix of prefixes) {
    ranges.push(parseAddressRange(prefix)!)
    if (ranges.length % SLICE === 0) yield
  }
  yield
  return new AddressRanges(ranges)
}

/** The day may be that of a time zone that is ahead. A list from the future, or a clock that is not set, says nothing. */
const AGE_DAYS_MIN = -1
/** Lists change some times a year. */
const AGE_DAYS_MAX = 90
const SLICE = 500
