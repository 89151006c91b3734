import { randomInt } from 'node:crypto'
import type { PacketDecoder } from './packet.ts'

/** The two ends of a conversation. Side 0 sent the first packet seen. */
export interface Ends {
  readonly isIpv6: boolean
  readonly protocol: number
  readonly addresses: readonly [Int32Array, Int32Array]
  readonly ports: readonly [number, number]
}

export interface Flow<State> {
  readonly ends: Ends
  state: State
  readonly hash: number
  /** The next flow with the same hash. */
  sibling: Flow<State> | null
  /** Neighbours in the list from least to most recently used. */
  older: Flow<State> | null
  newer: Flow<State> | null
  movedAt: number
}

/**
 * All current conversations, `max` at most: a new one evicts the least recently used. Every packet needs a
 * lookup, so it works without building a key.
 */
export class FlowTable<State> {
  /** Which side of the last found flow sent the packet. */
  side: 0 | 1 = 0
  readonly #max: number
  readonly #evicted: (flow: Flow<State>) => void
  readonly #flows = new Map<number, Flow<State>>()
  #size = 0
  #oldest: Flow<State> | null = null
  #newest: Flow<State> | null = null
  #clock = 0

  constructor(max: number, evicted: (flow: Flow<State>) => void) {
    this.#max = max
    this.#evicted = evicted
  }

  /** The flow of a packet, or `null` if it belongs to none. Sets `side` to the sender. */
  find(packet: PacketDecoder, sourcePort: number, destinationPort: number): Flow<State> | null {
    this.#clock++
    let flow = this.#flows.get(hashOf(packet, sourcePort, destinationPort)) ?? null
    while (flow !== null) {
      if (isSide(flow.ends, 0, packet, sourcePort, destinationPort)) return this.#found(flow, 0)
      if (isSide(flow.ends, 1, packet, sourcePort, destinationPort)) return this.#found(flow, 1)
      flow = flow.sibling
    }
    return null
  }

  /** Begins a flow for a packet for which `find` returned `null`. Its sender is side 0. */
  begin(
    packet: PacketDecoder,
    sourcePort: number,
    destinationPort: number,
    open: (ends: Ends) => State,
  ): Flow<State> {
    if (this.#size === this.#max) this.#evict(this.#oldest!)
    const hash = hashOf(packet, sourcePort, destinationPort)
    const ends: Ends = {
      isIpv6: packet.isIpv6,
      protocol: packet.protocol,
      addresses: [packet.source.slice(), packet.destination.slice()],
      ports: [sourcePort, destinationPort],
    }
    const flow: Flow<State> = {
      ends,
      state: open(ends),
      hash,
      sibling: this.#flows.get(hash) ?? null,
      older: null,
      newer: null,
      movedAt: this.#clock,
    }
    this.#flows.set(hash, flow)
    this.#size++
    this.#append(flow)
    this.side = 0
    return flow
  }

  /** All flows, least recently used first. */
  *oldestFirst(): Generator<Flow<State>, void> {
    for (let flow = this.#oldest; flow !== null; flow = flow.newer) yield flow
  }

  /** Evicts all flows, least recently used first. */
  clear(): void {
    while (this.#oldest !== null) this.#evict(this.#oldest)
  }

  #found(flow: Flow<State>, side: 0 | 1): Flow<State> {
    this.side = side
    // A busy flow is not moved for every packet. At most half the table can be newer than it.
    if (this.#clock - flow.movedAt > this.#max / 2) {
      flow.movedAt = this.#clock
      this.#unlink(flow)
      this.#append(flow)
    }
    return flow
  }

  #evict(flow: Flow<State>): void {
    this.#unlink(flow)
    this.#size--
    const first = this.#flows.get(flow.hash)!
    if (first === flow) {
      if (flow.sibling === null) this.#flows.delete(flow.hash)
      else this.#flows.set(flow.hash, flow.sibling)
    } else {
      let before = first
      while (before.sibling !== flow) before = before.sibling!
      before.sibling = flow.sibling
    }
    this.#evicted(flow)
  }

  #append(flow: Flow<State>): void {
    flow.older = this.#newest
    flow.newer = null
    if (this.#newest === null) this.#oldest = flow
    else this.#newest.newer = flow
    this.#newest = flow
  }

  #unlink(flow: Flow<State>): void {
    if (flow.older === null) this.#oldest = flow.newer
    else flow.older.newer = flow.newer
    if (flow.newer === null) this.#newest = flow.older
    else flow.newer.older = flow.older
  }
}

function isSide(
  ends: Ends,
  side: 0 | 1,
  packet: PacketDecoder,
  sourcePort: number,
  destinationPort: number,
): boolean {
  const other = side === 0 ? 1 : 0
  if (ends.ports[side] !== sourcePort || ends.ports[other] !== destinationPort) return false
  if (ends.protocol !== packet.protocol || ends.isIpv6 !== packet.isIpv6) return false
  const source = ends.addresses[side]
  const destination = ends.addresses[other]
  if (source[0] !== packet.source[0] || destination[0] !== packet.destination[0]) return false
  if (!ends.isIpv6) return true
  for (let word = 1; word < 4; word++) {
    if (source[word] !== packet.source[word] || destination[word] !== packet.destination[word]) return false
  }
  return true
}

/** The same hash for both directions. */
function hashOf(packet: PacketDecoder, sourcePort: number, destinationPort: number): number {
  return (
    (mix(packet.source, packet.isIpv6, sourcePort) +
      mix(packet.destination, packet.isIpv6, destinationPort)) |
    0
  )
}

function mix(address: Int32Array, isIpv6: boolean, port: number): number {
  let hash = stirred(stirred(SEED ^ port) ^ address[0]!)
  if (isIpv6) for (let word = 1; word < 4; word++) hash = stirred(hash ^ address[word]!)
  return hash
}

/**
 * MurmurHash3's finalizer. It also runs between port and address, because otherwise one could cancel out the
 * other.
 */
function stirred(value: number): number {
  let hash = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

/** A random seed, so that a crafted capture cannot give all flows the same hash. */
const SEED = randomInt(2 ** 32)
