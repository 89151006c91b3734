import { lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { buildConnector } from 'undici'
import { Fault } from '../fault.ts'

/**
 * Makes a connector of undici refuse addresses that are not on the public internet: this machine, the networks around
 * it, a cloud's metadata. It is looked at the very address that is connected to, so that a name cannot be one address
 * when it is checked and another one afterwards.
 */
export function publicOnly(connector: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    // A literal address is never looked up.
    const host = options.hostname.replace(/^\[(.*)\]$/, '$1')
    if (isIP(host) === 0 || isPublicAddress(host)) return connector(options, callback)
    callback(refused(host), null)
  }
}

/** To be given to the connector, too: finds only public addresses of a name. */
export const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, '')
    const found = addresses.filter(({ address }) => isPublicAddress(address))
    if (found.length === 0) return callback(refused(hostname), '')
    if (options.all) return callback(null, found)
    callback(null, found[0]!.address, found[0]!.family)
  })
}

export function isPublicAddress(address: string): boolean {
  // `process` turns ::ffff:10.0.0.1 into 10.0.0.1.
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'unicast'
}

export const ADDRESS_REFUSED = 'ADDRESS_REFUSED'

function refused(host: string): Fault {
  return new Fault(ADDRESS_REFUSED, `${host} is not on the public internet; allow_private: true allows it`)
}
