import { randomInt } from 'node:crypto'
import type { PacketDecoder } from './packet.ts'

/** Who takes part in a conversation; side 0 is the one that was seen first. */
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
  /** Of the flows with the same hash. */
  sibling: Flow<State> | null
  /** From the least to the most recently used. */
  older: Flow<State> | null
  newer: Flow<State> | null
  movedAt: number
}

/**
 * All conversations going on, at most `max` of them: the one that was silent longest gives way. Looked up for every
 * packet, so without building a key.
 */
export class FlowTable<State> {
  /** Which side of the flow last found sent the packet. */
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

  /** The flow a packet belongs to, `null` when it is the first of one; `side` says who sent it. */
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

  /** Begins the flow of a packet that `find` knew none for; its sender is side 0. */
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

  /** All that are known, from the least recently used on. */
  *oldestFirst(): Generator<Flow<State>, void> {
    for (let flow = this.#oldest; flow !== null; flow = flow.newer) yield flow
  }

  /** From the least recently used on; the table is empty afterwards. */
  clear(): void {
    while (this.#oldest !== null) this.#evict(this.#oldest)
  }

  #found(flow: Flow<State>, side: 0 | 1): Flow<State> {
    this.side = side
    // A busy flow is not moved for each packet; no more than half the table can have come after it.
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

/** The same for both directions. */
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

/** MurmurHash3's finalizer. Between port and address too: else one could make up for the other. */
function stirred(value: number): number {
  let hash = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

/** So that nobody can make a capture whose flows all have one hash. */
const SEED = randomInt(2 ** 32)
