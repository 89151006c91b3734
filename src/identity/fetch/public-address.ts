import { lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { buildConnector } from 'undici'
import { Fault } from '../../shared/fault.ts'

/**
 * Makes a connector of undici refuse addresses that are not on the public internet: this machine, local
 * networks, cloud metadata. The check uses the address that is connected to, so that a name cannot resolve to
 * one address for the check and to another for the connection.
 */
export function publicOnly(connector: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    // A literal address skips the lookup, so check it here.
    const host = options.hostname.replace(/^\[(.*)\]$/, '$1')
    const mayBe = isIP(host) === 0 ? !isOwnName(host) : isPublicAddress(host)
    if (mayBe) return connector(options, callback)
    callback(refused(host), null)
  }
}

/** Lookup function for the connector: returns the addresses of a name only if all are public. */
export function publicLookup(find: LookupFunction = lookup): LookupFunction {
  return (hostname, options, callback) => {
    find(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, '')
      const found = Array.isArray(addresses) ? addresses : [{ address: addresses, family: 0 }]
      // A public name has only public addresses. A mix is an attempt to have the private one tried.
      const [first] = found
      if (first === undefined || !found.every(({ address }) => isPublicAddress(address)))
        return callback(refused(hostname), '')
      if (options.all) return callback(null, found)
      callback(null, first.address, first.family)
    })
  }
}

/** Whether the name means this machine, whatever a name server says (RFC 6761 §6.3). */
export function isOwnName(name: string): boolean {
  return OWN_NAME.test(name)
}

export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  // `process` turns ::ffff:10.0.0.1 into 10.0.0.1.
  const read = ipaddr.process(address)
  // For IPv6 only 2000::/3 is allocated (RFC 4291 §2.4); ::10.0.0.1 looks like any other address.
  const isGivenOut = read instanceof ipaddr.IPv4 || (read.parts[0]! & 0xe000) === 0x2000
  return isGivenOut && read.range() === 'unicast'
}

function refused(host: string): Fault {
  return new Fault(ADDRESS_REFUSED, `${host} is not on the public internet`)
}

export const ADDRESS_REFUSED = 'ADDRESS_REFUSED'
const OWN_NAME = /(?:^|\.)localhost\.?$/i
