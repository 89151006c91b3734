import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { type HeldBytes, TcpStream } from '../../src/capture/tcp-stream.ts'
import { memoryInUse } from './memory.ts'
import { timeBox } from '../time-box.ts'

const TIME_BOX = timeBox(20_000, 1_500)

/** What came out: bytes with the frames they are said to have come in, `null` for each byte of a gap. */
class Outcome {
  readonly bytes: (number | null)[] = []
  readonly frames: number[] = []
  readonly held: HeldBytes = { total: 0 }
  readonly stream = new TcpStream(
    {
      data: (bytes, frame) => {
        assert.ok(bytes.length > 0)
        for (const byte of bytes) {
          this.bytes.push(byte)
          this.frames.push(frame)
        }
      },
      gap: (length) => {
        assert.ok(length > 0)
        for (let i = 0; i < length; i++) {
          this.bytes.push(null)
          this.frames.push(0)
        }
      },
    },
    this.held,
  )

  /** A segment whose memory is used for something else afterwards. */
  segment(sequence: number, bytes: Uint8Array, frame: number): void {
    const borrowed = Buffer.from(bytes)
    this.stream.segment(sequence | 0, borrowed, frame)
    borrowed.fill(0xee)
  }

  get text(): string {
    return this.bytes.map((byte) => (byte === null ? '.' : String.fromCharCode(byte))).join('')
  }
}

interface Captured {
  readonly from: number
  readonly to: number
}

/** A stream, its SYN, and its segments as captured: late, twice, overlapping, cut otherwise when sent again. */
const captures = fc
  .record({
    bytes: fc.uint8Array({ minLength: 1, maxLength: 1500 }),
    syn: fc.oneof(fc.nat(0xffff_ffff), fc.integer({ min: 2 ** 32 - 1500, max: 2 ** 32 - 1 })),
    sizes: fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 10 }),
    changes: fc.array(
      fc.record({
        late: fc.nat(6),
        before: fc.nat(50),
        after: fc.nat(50),
        again: fc.boolean(),
        lost: fc.nat(3),
      }),
      { minLength: 1, maxLength: 20 },
    ),
  })
  .map(({ bytes, syn, sizes, changes }) => {
    const sent: (Captured & { readonly order: number; readonly lost: boolean })[] = []
    let from = 0
    for (let i = 0; from < bytes.length; i++) {
      const to = Math.min(bytes.length, from + sizes[i % sizes.length]!)
      const { late, before, after, again, lost } = changes[i % changes.length]!
      const wide = { from: Math.max(0, from - before), to: Math.min(bytes.length, to + after) }
      sent.push({ from, to, order: i + late, lost: lost === 0 })
      if (again) sent.push({ ...wide, order: i + ((late * 3) % 7), lost: lost === 1 })
      from = to
    }
    return { bytes, syn, sent: sent.toSorted((a, b) => a.order - b.order) }
  })

test('tcp stream: whatever order the segments come in, the stream comes out as it was sent', async () => {
  fc.assert(
    fc.property(captures, ({ bytes, syn, sent }) => {
      const outcome = new Outcome()
      assert.equal(outcome.stream.begin(syn | 0), true)
      for (const [i, { from, to }] of sent.entries())
        outcome.segment(syn + 1 + from, bytes.subarray(from, to), i + 1)
      assert.deepEqual(outcome.bytes, [...bytes])
      assert.equal(outcome.held.total, 0)
      assert.ok(outcome.stream.reached((syn + 1 + bytes.length) | 0))
      assert.ok(!outcome.stream.reached((syn + 2 + bytes.length) | 0))
      // A byte has come when it and all before it have.
      const firstSeen = [...bytes.keys()].map(
        (at) => 1 + sent.findIndex(({ from, to }) => from <= at && at < to),
      )
      const complete: number[] = []
      for (const frame of firstSeen) complete.push(Math.max(frame, complete.at(-1) ?? 0))
      assert.deepEqual(outcome.frames, complete)
    }),
    TIME_BOX,
  )
})

test('tcp stream: what is lost comes out as gaps of the same length', async () => {
  fc.assert(
    fc.property(captures, fc.boolean(), ({ bytes, syn, sent }, withSyn) => {
      const seen = sent.filter(({ lost }) => !lost)
      const outcome = new Outcome()
      if (withSyn) outcome.stream.begin(syn | 0)
      for (const [i, { from, to }] of seen.entries())
        outcome.segment(syn + 1 + from, bytes.subarray(from, to), i + 1)
      outcome.stream.flush()
      // Without a SYN the first segment is the beginning.
      const begin = withSyn ? 0 : (seen[0]?.from ?? 0)
      const end = Math.max(begin, ...seen.map(({ to }) => to))
      const expected = [...bytes.subarray(begin, end)].map((byte, i) =>
        seen.some(({ from, to }) => from <= begin + i && begin + i < to) ? byte : null,
      )
      assert.deepEqual(outcome.bytes, expected)
      assert.equal(outcome.held.total, 0)
      const frames = outcome.frames.filter((frame) => frame > 0)
      assert.deepEqual(
        frames,
        frames.toSorted((a, b) => a - b),
      )
    }),
    TIME_BOX,
  )
})

test('tcp stream: a SYN sent again is the same connection, another one is not', async () => {
  const { stream } = new Outcome()
  assert.equal(stream.begin(1000), true)
  assert.equal(stream.begin(1000), true)
  assert.equal(stream.begin(1001), false)
  assert.equal(stream.syn, 1000)
})

test('tcp stream: data that overtook its SYN is the same connection, as long as it fits', async () => {
  for (const [sequence, same] of [
    [0xffff_ffff, true],
    [0xffff_fffe, true],
    [0xffff_fff0, true],
    [4, false],
    [0x7000_0000, false],
    [0x9000_0000, false],
  ] as const) {
    const outcome = new Outcome()
    outcome.segment(0, Buffer.from('data'), 1)
    assert.equal(outcome.stream.begin(sequence | 0), same, String(sequence))
    assert.equal(outcome.text, 'data')
  }
})

test('tcp stream: one keep-alive byte, an old segment and one from nowhere change nothing', async () => {
  const outcome = new Outcome()
  outcome.stream.begin(-3)
  outcome.segment(-2, Buffer.from('abcd'), 1)
  outcome.segment(1, Buffer.from('x'), 2)
  outcome.segment(-2000, Buffer.from('old'), 3)
  outcome.segment(2 ** 30 + 1000, Buffer.from('nowhere'), 4)
  outcome.segment(2, Buffer.from('ef'), 5)
  outcome.stream.flush()
  assert.equal(outcome.text, 'abcdef')
})

test('tcp stream: segments from anywhere, half the sequence space away too, are dealt with', async () => {
  const place = fc.oneof(
    fc.nat(100),
    fc.nat(100).map((near) => 2 ** 31 + near - 50),
    fc.nat(100).map((near) => 2 ** 30 + near - 50),
    fc.nat(0xffff_ffff),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(place, fc.integer({ min: 1, max: 60 })), { maxLength: 8 }), (segments) => {
      const sink = {
        data: (bytes: Buffer) => {
          given += bytes.length
        },
        gap: () => undefined,
      }
      const held: HeldBytes = { total: 0 }
      const stream = new TcpStream(sink, held)
      let given = 0
      stream.begin(-1)
      for (const [at, length] of segments) stream.segment(at | 0, Buffer.alloc(length), 1)
      stream.flush()
      assert.equal(held.total, 0)
      assert.ok(given <= segments.reduce((total, [, length]) => total + length, 0))
    }),
    TIME_BOX,
  )
})

test('tcp stream: a hole that is not filled is given up in time', async () => {
  const outcome = new Outcome()
  outcome.stream.begin(0)
  for (let i = 0; i < 512; i++) outcome.segment(11 + 2 * i, Buffer.from('x'), i)
  assert.equal(outcome.text, '')
  outcome.segment(11 + 2 * 512, Buffer.from('x'), 512)
  assert.equal(outcome.text, '..........x')
  // However long it is, within the largest window there is.
  const gaps: number[] = []
  const far = new TcpStream({ data: () => undefined, gap: (length) => gaps.push(length) }, { total: 0 })
  far.begin(0)
  for (let at = 0; at < 256 * 1024; at += 1024) far.segment(1_000_000_001 + at, Buffer.alloc(1024), 1)
  assert.deepEqual(gaps, [1_000_000_000])
})

test('tcp stream: nothing makes streams hold more than they may', async () => {
  const MIB = 1024 * 1024
  const tiny = Buffer.of(1)
  const large = Buffer.alloc(65_000)
  const one = new Outcome()
  one.stream.begin(0)
  // Many small holes first: giving up one of them would free a byte only.
  for (let i = 0; i < 500; i++) one.segment(10 + 2 * i, tiny, 1)
  for (let i = 0; i < 100; i++) {
    one.segment(10_000 + i * 70_000, large, 2)
    assert.ok(one.held.total <= MIB / 4, `${one.held.total} bytes held by one`)
  }

  const held: HeldBytes = { total: 0 }
  const sink = { data: () => undefined, gap: () => undefined }
  const streams = Array.from({ length: 600 }, () => new TcpStream(sink, held))
  const before = memoryInUse()
  for (const stream of streams) {
    stream.begin(0)
    for (let i = 0; i < 3; i++) stream.segment(10 + i * 70_000, large, 1)
    for (let i = 0; i < 500; i++) stream.segment(300_000 + 2 * i, tiny, 1)
    assert.ok(held.total <= 64 * MIB, `${held.total} bytes held by all`)
  }
  const real = memoryInUse() - before
  assert.ok(real < 2 * 64 * MIB, `${real} bytes for ${held.total}`)
  for (const stream of streams) stream.flush()
  assert.equal(held.total, 0)
})
