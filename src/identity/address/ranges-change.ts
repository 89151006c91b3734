import { type AddressRange, AddressRanges, parseAddressRange } from '../../wire/address-ranges.ts'

/**
 * Why a list is not taken in the place of the one before; `null`: it may be. What a vendor's server gives for his list
 * may be half of it, somebody else's, or what a page of theirs says about it: who is in none of it any more would be
 * called foreign, and who is in all of it verified. What goes beyond this, a person has to look at.
 */
export function changeProblem(before: readonly string[], after: readonly string[]): string | null {
  const [old, next] = [before.map(range), after.map(range)]
  const ranges = new AddressRanges(next)
  const kept = old.filter((each) => ranges.touches(each)).length
  if (kept < old.length * KEPT_MIN)
    return `of the ${old.length} ranges before only ${kept} are in it: it takes at least half`
  for (const isIpv4 of [true, false]) {
    const [had, has] = [size(old, isIpv4), size(next, isIpv4)]
    const most = Math.max(had * GROWTH_MAX, had + (isIpv4 ? GROWTH_IPV4 : GROWTH_IPV6))
    if (has > most)
      return `its ${isIpv4 ? 'IPv4' : 'IPv6'} addresses are ${times(has, had)} as many as before`
  }
  return null
}

/** Addresses, of IPv6 networks of 64 bits; one that is in two ranges counts twice. */
function size(ranges: readonly AddressRange[], isIpv4: boolean): number {
  const bits = isIpv4 ? 32 : 64
  const own = ranges.filter((each) => each.isIpv4 === isIpv4)
  return own.reduce((sum, { length }) => sum + 2 ** Math.max(0, bits - length), 0)
}

function times(has: number, had: number): string {
  return had === 0 ? 'too many, and not' : `${Math.round(has / had)} times`
}

function range(text: string): AddressRange {
  return parseAddressRange(text)!
}

const KEPT_MIN = 0.5
const GROWTH_MAX = 4
/** A short list may well grow by a /16, and by a /32 of IPv6, as providers have it. */
const GROWTH_IPV4 = 65_536
const GROWTH_IPV6 = 2 ** 32
