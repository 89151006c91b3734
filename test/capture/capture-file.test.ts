import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { type CaptureFault, CaptureReader } from '../../src/capture/capture-file.ts'
import { memoryInUse } from './memory.ts'
import {
  type Block,
  block,
  commented,
  enhancedPacket,
  interfaceBlock,
  MODIFIED,
  NANOSECONDS,
  oldPacket,
  pcapngParts,
  pcapParts,
  secretsBlock,
  simplePacket,
  u32,
} from './packet-builder.ts'
import { timeBox } from '../time-box.ts'

interface Seen {
  /** Each frame's number, link type and bytes; or the text of a key log. */
  readonly events: readonly string[]
  readonly fault: CaptureFault | null
}

const FRAMES = [Buffer.from('one'), Buffer.alloc(0), Buffer.from('three and more'), Buffer.alloc(300, 4)]
const SECRETS = 'CLIENT_RANDOM 00 11\n'
const UNKNOWN = block(0x0bad, () => [Buffer.alloc(40, 0xee)])
const NAMES = block(4, () => [Buffer.alloc(8)])

/** What a part of a file says, beside the bytes it is made of. */
interface Part {
  readonly bytes: Buffer
  readonly event: string | null
}

interface File {
  readonly name: string
  readonly parts: readonly Part[]
}

const PCAPS: readonly File[] = [
  ...(['little', 'big'] as const).flatMap((order) =>
    [undefined, NANOSECONDS, MODIFIED].map((magic) => {
      const [header, ...records] = pcapParts(FRAMES, { order, linkType: 113, ...(magic && { magic }) })
      const parts = records.map((bytes, i) => ({ bytes, event: frame(i + 1, 113, FRAMES[i]!) }))
      return {
        name: `pcap, ${order}-endian, ${magic?.toString(16)}`,
        parts: [{ bytes: header!, event: null }, ...parts],
      }
    }),
  ),
]

const BLOCKS: readonly (readonly [Block, string | null])[] = [
  [interfaceBlock(1), null],
  [enhancedPacket(FRAMES[0]!), frame(1, 1, FRAMES[0]!)],
  [UNKNOWN, null],
  [interfaceBlock(113), null],
  [commented(enhancedPacket(FRAMES[1]!, 1)), frame(2, 113, FRAMES[1]!)],
  [commented(secretsBlock(SECRETS)), `secrets ${SECRETS}`],
  [secretsBlock('SSH keys', 0x5353484b), null],
  [simplePacket(FRAMES[2]!), frame(3, 1, FRAMES[2]!)],
  [NAMES, null],
  [oldPacket(FRAMES[3]!, 1), frame(4, 113, FRAMES[3]!)],
]
/** Its interfaces are its own. */
const SECOND_SECTION: readonly (readonly [Block, string | null])[] = [
  [interfaceBlock(276, 5), null],
  [simplePacket(FRAMES[2]!.subarray(0, 5), 14), frame(5, 276, FRAMES[2]!.subarray(0, 5))],
]

const PCAPNGS: readonly File[] = (['little', 'big'] as const).map((order) => ({
  name: `pcapng, ${order}-endian and then the other`,
  parts: [...section(BLOCKS, order), ...section(SECOND_SECTION, order === 'little' ? 'big' : 'little')],
}))

const FILES = [...PCAPS, ...PCAPNGS]

for (const { name, parts } of FILES) {
  test(`capture file: ${name}: cut at every byte`, async () => {
    const whole = bytesOf(parts)
    for (let cut = 1; cut <= whole.length; cut++) {
      const events: string[] = []
      let begin = 0
      for (const { bytes, event } of parts) {
        if (begin + bytes.length > cut) break
        begin += bytes.length
        if (event !== null) events.push(event)
      }
      const seen = read([whole.subarray(0, cut)])
      assert.deepEqual(seen.events, events, `cut at ${cut}`)
      const kind = cut < 4 ? 'not-a-capture' : 'truncated'
      const fault = begin === cut ? null : { kind, offset: begin }
      assert.deepEqual(
        seen.fault && { kind: seen.fault.kind, offset: seen.fault.offset },
        fault,
        `cut at ${cut}`,
      )
    }
  })
}

test('capture file: pieces of any size give the same, and may be used again', async () => {
  for (const { name, parts } of FILES) {
    const whole = bytesOf(parts)
    assert.deepEqual(read(cutInto(whole, [1])), read([whole]), name)
  }
  fc.assert(
    fc.property(fc.constantFrom(...FILES), sizes, ({ parts }, lengths) => {
      const whole = bytesOf(parts)
      assert.deepEqual(read(cutInto(whole, lengths)), read([whole]))
    }),
    TIME_BOX,
  )
})

test('capture file: what is wrong has a name and a place', async () => {
  const [header, record] = pcapParts([FRAMES[0]!]) as [Buffer, Buffer]
  const inSection = (...blocks: Block[]): Buffer => Buffer.concat(pcapngParts([interfaceBlock(), ...blocks]))
  const before = inSection().length
  const longer = changed(enhancedPacket(FRAMES[0]!)('little'), 20, 8)
  const faults: readonly (readonly [
    bytes: Buffer,
    frames: number,
    kind: string,
    offset: number,
    detail: RegExp,
  ])[] = [
    [Buffer.alloc(0), 0, 'not-a-capture', 0, /the file is empty/],
    [Buffer.from('GET / HTTP/1.1\r\n'), 0, 'not-a-capture', 0, /neither pcap nor pcapng/],
    [Buffer.from('\xd4\xc3', 'latin1'), 0, 'not-a-capture', 0, /neither pcap nor pcapng/],
    [
      changed(Buffer.concat([header, record, record]), 24 + record.length + 8, 0x0100_0001),
      1,
      'corrupt',
      43,
      /frame 2 claims 16777217 bytes/,
    ],
    [
      Buffer.concat([inSection(), changed(UNKNOWN('little'), 4, 11)]),
      0,
      'corrupt',
      before,
      /type 0xbad claims 11/,
    ],
    [
      Buffer.concat([inSection(), changed(UNKNOWN('little'), 4, 54)]),
      0,
      'corrupt',
      before,
      /type 0xbad claims 54/,
    ],
    [
      Buffer.concat([inSection(), changed(UNKNOWN('little'), 4, 0xffff_fffc)]),
      0,
      'truncated',
      before,
      /inside a record/,
    ],
    [
      Buffer.concat([inSection(), changed(enhancedPacket(NONE)('little'), 4, 0x0100_0004)]),
      0,
      'corrupt',
      before,
      /type 0x6 claims 16777220/,
    ],
    [Buffer.concat([inSection(), longer]), 0, 'corrupt', before, /frame 1 is longer than its block/],
    [
      Buffer.concat([inSection(), changed(longer, 20, 0xffff_ffff)]),
      0,
      'corrupt',
      before,
      /frame 1 is longer/,
    ],
    [
      Buffer.concat([inSection(), changed(enhancedPacket(NONE)('little'), 28, 36)]),
      0,
      'corrupt',
      before,
      /another length/,
    ],
    [
      inSection(enhancedPacket(NONE), enhancedPacket(NONE, 1)),
      1,
      'corrupt',
      before + 32,
      /frame 2 names interface 1/,
    ],
    [inSection(block(6, () => [Buffer.alloc(16)])), 0, 'corrupt', before, /too short/],
    [inSection(block(2, () => [Buffer.alloc(16)])), 0, 'corrupt', before, /too short/],
    [inSection(block(3, () => [])), 0, 'corrupt', before, /too short/],
    [inSection(block(10, () => [u32(0)])), 0, 'corrupt', before, /too short/],
    [inSection(block(1, () => [u32(0)])), 0, 'corrupt', before, /without a link type/],
    [Buffer.concat(pcapngParts([simplePacket(FRAMES[0]!)])), 0, 'corrupt', 28, /names interface 0/],
    [changed(inSection(), 8, 0), 0, 'corrupt', 0, /no byte order/],
    // The interfaces of one section are unknown to the next.
    [
      Buffer.concat([inSection(), ...pcapngParts([enhancedPacket(NONE)])]),
      0,
      'corrupt',
      before + 28,
      /names interface 0/,
    ],
  ]
  for (const [bytes, frames, kind, offset, detail] of faults) {
    for (const chunks of [[bytes], cutInto(bytes, [1])]) {
      const { events, fault } = read(chunks)
      assert.deepEqual([fault?.kind, fault?.offset], [kind, offset], `${detail}: ${fault?.detail}`)
      assert.match(fault!.detail, detail)
      assert.equal(events.length, frames, String(detail))
    }
  }
})

test('capture file: a key log that claims more than its block ends with it', async () => {
  const secrets = changed(secretsBlock(SECRETS)('little'), 12, 0xffff_ffff)
  assert.deepEqual(read([Buffer.concat([...pcapngParts([]), secrets])]).events, [`secrets ${SECRETS}`])
})

test('capture file: a simple packet is as long as its block lets it be', async () => {
  const blocks = [interfaceBlock(), simplePacket(NONE), simplePacket(Buffer.from('four'), 1000)]
  assert.deepEqual(read(pcapngParts(blocks)).events, [frame(1, 1, NONE), frame(2, 1, Buffer.from('four'))])
})

test('capture file: only so many interfaces', async () => {
  const one = interfaceBlock()('little')
  const reader = new CaptureReader({ packet: () => undefined, secrets: () => undefined })
  reader.push(Buffer.concat([...pcapngParts([]), ...Array.from({ length: 65_536 }, () => one)]))
  assert.equal(reader.fault, null)
  reader.push(one)
  assert.match(reader.fault!.detail, /too many interfaces/)
})

test('capture file: nothing is kept of what goes on for ever', async () => {
  const endless: readonly Buffer[] = [
    Buffer.from('\xff\xff\xff\xff', 'latin1'), // no capture
    changed(Buffer.concat(pcapParts([NONE])), 32, 0xffff_ffff), // a frame without end
    Buffer.concat([...pcapngParts([]), changed(UNKNOWN('little'), 4, 0xffff_fffc)]), // a block to pass over
  ]
  const garbage = Buffer.alloc(1024 * 1024, 0xff)
  for (const start of endless) {
    const reader = new CaptureReader({ packet: () => assert.fail('no frame'), secrets: () => undefined })
    const before = memoryInUse()
    reader.push(start)
    for (let pushed = 0; pushed < 200; pushed++) reader.push(garbage)
    const kept = memoryInUse() - before
    assert.ok(kept < 20 * 1024 * 1024, `${kept} bytes kept after ${start.toString('hex', 0, 8)}`)
    reader.end()
  }
})

test('capture file: any change to a file is read to its end or fault, the same in any pieces', async () => {
  const mutated = fc
    .tuple(
      fc.constantFrom(...FILES),
      fc.array(fc.tuple(fc.nat(), fc.constantFrom(0, 1, 4, 0x7f, 0xff), fc.nat(2)), { maxLength: 4 }),
    )
    .map(([{ parts }, changes]) => {
      let bytes = bytesOf(parts)
      for (const [where, byte, kind] of changes) {
        const at = where % bytes.length
        const [left, right] = [bytes.subarray(0, at), bytes.subarray(at)]
        if (kind === 0) bytes = Buffer.concat([left, Buffer.of(byte), right.subarray(1)])
        else if (kind === 1) bytes = Buffer.concat([left, Buffer.of(byte), right])
        else bytes = Buffer.concat([left, right.subarray(byte)])
      }
      return bytes
    })
  fc.assert(
    fc.property(mutated, sizes, (bytes, lengths) => {
      assert.deepEqual(read(cutInto(bytes, lengths)), read([bytes]))
    }),
    TIME_BOX,
  )
})

function read(chunks: readonly Buffer[]): Seen {
  const events: string[] = []
  const reader = new CaptureReader({
    packet: (number, linkType, bytes, at, end) => {
      assert.ok(0 <= at && at <= end && end <= bytes.length)
      events.push(frame(number, linkType, bytes.subarray(at, end)))
    },
    secrets: (text) => events.push(`secrets ${text}`),
  })
  for (const chunk of chunks) {
    const borrowed = Buffer.from(chunk)
    reader.push(borrowed)
    borrowed.fill(0xee)
  }
  reader.end()
  assert.equal(reader.frames, events.filter((event) => event.startsWith('frame')).length)
  return { events, fault: reader.fault }
}

function frame(number: number, linkType: number, bytes: Buffer): string {
  return `frame ${number} on ${linkType}: ${bytes.toString('hex')}`
}

function section(blocks: readonly (readonly [Block, string | null])[], order: 'little' | 'big'): Part[] {
  const [header, ...rest] = pcapngParts(
    blocks.map(([each]) => each),
    order,
  )
  return [
    { bytes: header!, event: null },
    ...rest.map((bytes, index) => ({ bytes, event: blocks[index]![1] })),
  ]
}

function bytesOf(parts: readonly Part[]): Buffer {
  return Buffer.concat(parts.map(({ bytes }) => bytes))
}

function changed(bytes: Buffer, at: number, value: number): Buffer {
  const copy = Buffer.from(bytes)
  copy.writeUInt32LE(value, at)
  return copy
}

/** In pieces of these lengths, over and over. */
function cutInto(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = lengths[pieces.length % lengths.length]!
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}

const NONE = Buffer.alloc(0)
const sizes = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 8 })
const TIME_BOX = timeBox(20_000, 2_000)
