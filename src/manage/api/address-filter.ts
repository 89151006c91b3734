import { Address, type AddressRange, AddressRanges, parseAddressRange } from '../../wire/address-ranges.ts'
import { insufficientScope } from '../http/access/needed-scopes.ts'
import type { Principal } from '../http/access/principal.ts'
import { sightOf } from '../intake/personal-data.ts'
import { invalid } from '../http/refusal.ts'

/**
 * The filter `address` of requests: an address or a network. A principal that sees only networks cannot find
 * out an address by filtering for it. Throws a Refusal.
 */
export function addressFilter(
  text: string,
  principal: Principal,
  publicUrl: string,
): (address: string) => boolean {
  const range = parseAddressRange(text)
  if (range === null) throw invalid([{ pointer: '/address', detail: TAKES }])
  if (sightOf(principal) === 'reduced' && !isShown(range))
    throw insufficientScope(NEEDED, principal, publicUrl)
  const ranges = new AddressRanges([range])
  return (address) => {
    ADDRESS.read(address)
    return ranges.has(ADDRESS)
  }
}

/** Whether the range is at least as large as the networks that are shown. */
function isShown({ isIpv4, length }: AddressRange): boolean {
  return length <= (isIpv4 ? 24 : 48)
}

const TAKES = 'takes an address or a network, such as 203.0.113.7, 203.0.113.0/24 or 2001:db8::/48'
const NEEDED = {
  what: 'a filter narrower than IPv4 /24 or IPv6 /48',
  needs: [['admin']],
} as const
/** Shared by all calls: an address is compared before the next one is read. */
const ADDRESS = new Address()
