import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { addressBehind } from '../../../wire/hop-address.ts'
import { AddressSet, normalAddress } from '../../../wire/ip-address.ts'

/**
 * The client address of each request to the management port. Everything that throttles, counts, logs or
 * audits by address takes it from here, through `ctx.state.address`. Nothing is remembered for the next
 * request on the same connection: a load balancer sends the requests of many clients over one connection.
 */
export class ClientAddresses {
  readonly trusted: AddressSet
  /** The source address in the PROXY header of a connection. */
  readonly #proxied = new WeakMap<Socket, string>()

  /** `trustedProxies`: addresses and ranges, validated when the settings were read. */
  constructor(trustedProxies: readonly string[]) {
    const trusted = AddressSet.parse(trustedProxies)
    if (trusted === null) throw new Error('manage.trusted_proxies was not checked')
    this.trusted = trusted
  }

  /** `socket`: the one that requests are read from. */
  setProxied(socket: Socket, address: string): void {
    this.#proxied.set(socket, address)
  }

  /**
   * Forwarding headers are read if the peer, or the client that its PROXY header names, is a trusted proxy.
   */
  of({ socket, headers }: IncomingMessage): string {
    const peer = this.#proxied.get(socket) ?? peerAddress(socket)
    if (!this.trusted.has(peer)) return peer
    const claims = {
      forwardedFor: textOf(headers['x-forwarded-for']),
      forwarded: textOf(headers.forwarded),
    }
    return addressBehind(peer, claims, this.trusted)
  }
}

export function peerAddress({ remoteAddress = '' }: Socket): string {
  return normalAddress(remoteAddress) ?? remoteAddress
}

/** Node joins repeated headers with commas. */
function textOf(value: string | string[] | undefined): string | null {
  return value === undefined ? null : String(value)
}
