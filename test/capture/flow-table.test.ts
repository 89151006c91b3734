import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { type Flow, FlowTable } from '../../src/capture/flow-table.ts'
import { PacketDecoder } from '../../src/capture/packet.ts'
import { timeBox } from '../time-box.ts'

/** The addresses of a packet, which differ in their last word. */
interface Sent {
  readonly from: number
  readonly fromPort: number
  readonly to: number
  readonly toPort: number
  /** More protocols than there are: the hash does not count them, so these collide. */
  readonly protocol?: number
  readonly isIpv6?: boolean
}

const SENT: Sent = { from: 1, fromPort: 50_000, to: 2, toPort: 443 }
const decoder = new PacketDecoder()

test('flow table: both directions are one flow, and the side tells the sender', async () => {
  for (const isIpv6 of [false, true]) {
    const table = tableOf(10)
    const flow = table.send({ ...SENT, isIpv6 })
    assert.equal(table.flows.side, 0)
    assert.ok(table.send(turned({ ...SENT, isIpv6 })) === flow)
    assert.equal(table.flows.side, 1)
    assert.ok(table.send({ ...SENT, isIpv6 }) === flow)
    assert.equal(table.flows.side, 0)
    assert.deepEqual(flow.ends.ports, [50_000, 443])
    assert.deepEqual(
      flow.ends.addresses.map((words) => words[isIpv6 ? 3 : 0]),
      [1, 2],
    )
  }
})

test('flow table: whatever differs is another flow', async () => {
  const table = tableOf(100)
  const others: readonly Sent[] = [
    SENT,
    { ...SENT, isIpv6: true },
    { ...SENT, protocol: 17 },
    { ...SENT, protocol: 17, isIpv6: true },
    { ...SENT, from: 3 },
    { ...SENT, to: 3 },
    { ...SENT, from: 3, isIpv6: true },
    { ...SENT, fromPort: 443 },
    { ...SENT, toPort: 50_000 },
    { ...SENT, from: 2, to: 1 },
    { ...SENT, from: 2 },
  ]
  const flows = new Set(others.flatMap((sent) => [table.send(sent), table.send(turned(sent))]))
  assert.equal(flows.size, others.length)
})

test('flow table: a machine that speaks to itself', async () => {
  const table = tableOf(10)
  const self = { from: 1, fromPort: 7, to: 1, toPort: 7 }
  assert.ok(table.send(self) === table.send(turned(self)))
})

test('flow table: of flows with one hash, any may go', async () => {
  const protocols = [0, 1, 2, 3, 4]
  for (const order of permutations(protocols)) {
    for (let gone = 0; gone <= protocols.length; gone++) {
      const table = tableOf(protocols.length)
      const flows = protocols.map((protocol) => table.send({ ...SENT, protocol }))
      // Used in this order, and long enough to count: so they go.
      for (const protocol of order) for (let i = 0; i < 4; i++) table.send({ ...SENT, protocol })
      for (let i = 0; i < gone; i++) table.send({ ...SENT, from: 100 + i })
      assert.deepEqual(
        table.evicted.map(({ ends }) => ends.protocol),
        order.slice(0, gone),
      )
      for (const [i, protocol] of order.entries()) {
        const found = table.flows.find(...packet({ ...SENT, protocol }))
        assert.ok(found === (i < gone ? null : flows[protocol]))
      }
    }
  }
})

test('flow table: no more than so many; the ones in use stay', async () => {
  const max = 64
  fc.assert(
    fc.property(fc.array(fc.nat(300), { minLength: 500, maxLength: 1000 }), (senders) => {
      const table = tableOf(max)
      const lastUsed = new Map<number, number>()
      for (const [now, from] of senders.entries()) {
        const known = lastUsed.get(from)
        const flow = table.flows.find(...packet({ ...SENT, from }))
        // What was in use within half a table's worth of packets is always there.
        if (known !== undefined && now - known < max / 2) assert.ok(flow !== null)
        if (flow === null) table.send({ ...SENT, from })
        assert.ok(table.begun - table.evicted.length <= max)
        lastUsed.set(from, now)
      }
      table.flows.clear()
      assert.equal(new Set(table.evicted).size, table.evicted.length)
      assert.equal(table.evicted.length, table.begun)
    }),
    timeBox(200, 2_000),
  )
})

test('flow table: emptied from the least recently used on, it can be used again', async () => {
  const table = tableOf(10)
  const flows = [1, 2, 3].map((from) => table.send({ ...SENT, from }))
  table.flows.clear()
  assert.ok(flows.every((flow, i) => flow === table.evicted[i]))
  assert.ok(table.send({ ...SENT, from: 1 }) !== flows[0])
  table.flows.clear()
  assert.equal(table.evicted.length, 4)
})

test('flow table: addresses and ports chosen with care do not share a hash', async () => {
  const count = 20_000
  const chosen: readonly (readonly [string, (i: number) => Sent])[] = [
    ['one for the other', (i) => ({ ...SENT, from: 0x0a00_0000 + i, fromPort: 0xffff ^ i })],
    ['at both ends', (i) => ({ ...SENT, from: 0x0a00_0000 + (i & 127), to: 0x0b00_0000 + (i >> 7) })],
    ['swapped', (i) => ({ ...SENT, fromPort: i, toPort: count - i })],
    ['in high bits', (i) => ({ ...SENT, from: i << 16 })],
    ['IPv6', (i) => ({ ...SENT, from: 0x0a00_0000 + i, fromPort: 0xffff ^ i, isIpv6: true })],
  ]
  for (const [name, sent] of chosen) {
    const table = tableOf(count)
    const flows = Array.from({ length: count }, (_, i) => table.send(sent(i)))
    // By chance 32 bits give 0.05 pairs.
    const shared = flows.filter((flow) => flow.sibling !== null).length
    assert.ok(shared < 20, `${name}: ${shared}`)
  }
})

test('flow table: where a hash is shared by chance, the addresses tell', async () => {
  const count = 250_000
  for (const isIpv6 of [false, true]) {
    const table = tableOf(count)
    for (let i = 0; i < count; i++)
      table.send({ ...SENT, from: i % 500, to: 500 + Math.floor(i / 500), isIpv6 })
    // Some seven pairs of these have one hash.
    assert.equal(table.begun, count)
  }
})

interface Table {
  readonly flows: FlowTable<string>
  readonly evicted: Flow<string>[]
  /** How many flows were begun. */
  readonly begun: number
  send(sent: Sent): Flow<string>
}

function tableOf(max: number): Table {
  const evicted: Flow<string>[] = []
  const flows = new FlowTable<string>(max, (flow) => evicted.push(flow))
  let begun = 0
  return {
    flows,
    evicted,
    get begun() {
      return begun
    },
    send(sent) {
      const addressed = packet(sent)
      const found = flows.find(...addressed)
      if (found !== null) return found
      begun++
      return flows.begin(...addressed, () => 'begun')
    },
  }
}

/** Until the next call: one decoder reads all packets of a capture, too. */
function packet(sent: Sent): [PacketDecoder, number, number] {
  const { from, to, fromPort, toPort, protocol = 6, isIpv6 = false } = sent
  decoder.protocol = protocol as 6
  decoder.isIpv6 = isIpv6
  decoder.source.set(isIpv6 ? [0x2001_0db8, 0, 0, from] : [from, 0, 0, 0])
  decoder.destination.set(isIpv6 ? [0x2001_0db8, 0, 0, to] : [to, 0, 0, 0])
  return [decoder, fromPort, toPort]
}

function turned({ from, fromPort, to, toPort, ...rest }: Sent): Sent {
  return { ...rest, from: to, fromPort: toPort, to: from, toPort: fromPort }
}

function permutations(values: readonly number[]): number[][] {
  if (values.length === 0) return [[]]
  return values.flatMap((value) =>
    permutations(values.filter((other) => other !== value)).map((rest) => [value, ...rest]),
  )
}
