import { type AddressRange, AddressRanges, parseAddressRange } from '../../wire/address-ranges.ts'

/**
 * Why a new list must not replace the previous one; `null`: it may. A vendor's server may return half a list,
 * a list of another vendor, or an unrelated page. Agents missing from such a list would be classified as
 * spoofed, and clients wrongly in it as verified. An admin has to review a larger change.
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

/** Number of IPv4 addresses or IPv6 /64 networks. An address in two ranges counts twice. */
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
/** A short list may grow by a /16 of IPv4 and by a /32 of IPv6: the sizes that providers hold. */
const GROWTH_IPV4 = 65_536
const GROWTH_IPV6 = 2 ** 32
