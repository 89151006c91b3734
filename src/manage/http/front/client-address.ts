import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { addressBehind } from '../../../wire/hop-address.ts'
import { AddressSet, normalAddress } from '../../../wire/ip-address.ts'

/**
 * The client's address of each request to the management port. Everything that throttles, counts, logs or audits by
 * address takes it from here, by way of `ctx.state.address`. Nothing of a request is remembered for the next one on the
 * same connection: a load balancer sends those of many clients over one.
 */
export class ClientAddresses {
  readonly trusted: AddressSet
  /** What the PROXY header of a connection said. */
  readonly #proxied = new WeakMap<Socket, string>()

  /** `trustedProxies`: addresses and ranges, checked when the settings were read. */
  constructor(trustedProxies: readonly string[]) {
    const trusted = AddressSet.parse(trustedProxies)
    if (trusted === null) throw new Error('manage.trusted_proxies was not checked')
    this.trusted = trusted
  }

  /** `socket`: that which requests are read from. */
  setProxied(socket: Socket, address: string): void {
    this.#proxied.set(socket, address)
  }

  /** Headers are read if the peer, or the client that its PROXY header names, is a trusted proxy. */
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

/** Node joins repeated headers by commas. */
function textOf(value: string | string[] | undefined): string | null {
  return value === undefined ? null : String(value)
}
