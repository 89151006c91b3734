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

/** The published addresses of an agent. */
export interface AddressList {
  readonly software: Software
  readonly published: PublishedRanges
  readonly ranges: AddressRanges
  /** The date of the list, in days since 1970. */
  readonly day: number
}

/** The address list of each agent. Never changed. An IPv4 range takes 8 bytes, an IPv6 range takes 32. */
export class AddressLists {
  readonly #lists: ReadonlyMap<SoftwareId, AddressList>

  private constructor(lists: ReadonlyMap<SoftwareId, AddressList>) {
    this.#lists = lists
  }

  /** Yields in between, because a list of ten thousand ranges takes milliseconds. */
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

  /** Looks up by id, so software from earlier signatures gets the current list. */
  of({ id }: Software): AddressList | null {
    return this.#lists.get(id) ?? null
  }

  /** The lists that contain an address. */
  with(address: Address): readonly AddressList[] {
    return [...this.#lists.values()].filter(({ ranges }) => ranges.has(address))
  }
}

/**
 * Compares the address of a client with the list of the agent that it claims to be, and adds the result to
 * `marks`. Returns whether the address is evidence. An unknown address, or one that many networks use, is
 * not. An incomplete or outdated list cannot contradict a claim.
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

/** Software with the same `ranges_url` shares one list. If several entries contain it, the newest is used. */
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

/**
 * The date may be from a time zone ahead of UTC. A list from further in the future, or a wrong clock, proves
 * nothing.
 */
const AGE_DAYS_MIN = -1
/** Vendors change their lists a few times a year. */
const AGE_DAYS_MAX = 90
const SLICE = 500
