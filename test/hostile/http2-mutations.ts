import type { Random } from '../fuzz/mutate.ts'
import { fieldBlock, type Frame, frame, framesOf } from '../proxy/http2-frames.ts'
import { HEADERS } from './http2-peer.ts'

/** `frames` with one to four changes, written out. What is left of a frame at the end is cut off. */
export function mutateFrames(
  frames: readonly Frame[],
  others: readonly (readonly Frame[])[],
  random: Random,
): Buffer {
  let changed = [...frames]
  for (let left = 1 + random.below(random.of([1, 1, 2, 4])); left > 0; left--)
    changed = random.of(CHANGES)(changed, others, random)
  const bytes = written(changed)
  // Now and then lengths lie, too.
  if (random.below(6) === 0 && bytes.length > 0) bytes[random.below(bytes.length)]! ^= 1 << random.below(8)
  return bytes.subarray(0, wholeLength(bytes))
}

export function written(frames: readonly Frame[]): Buffer {
  return Buffer.concat(frames.map(({ type, flags, stream, payload }) => frame(type, flags, stream, payload)))
}

function wholeLength(bytes: Buffer): number {
  return framesOf(bytes).reduce((sum, { payload }) => sum + 9 + payload.length, 0)
}

type Change = (frames: Frame[], others: readonly (readonly Frame[])[], random: Random) => Frame[]

const drop: Change = (frames, _others, random) => frames.toSpliced(random.below(frames.length + 1), 1)

const double: Change = (frames, _others, random) => {
  if (frames.length === 0) return frames
  const at = random.below(frames.length)
  return frames.toSpliced(random.below(frames.length + 1), 0, frames[at]!)
}

const move: Change = (frames, _others, random) => {
  if (frames.length === 0) return frames
  const [moved] = frames.slice(random.below(frames.length))
  const rest = frames.filter((one) => one !== moved)
  return rest.toSpliced(random.below(rest.length + 1), 0, moved!)
}

const bring: Change = (frames, others, random) => {
  const from = random.of(others)
  if (from.length === 0) return frames
  return frames.toSpliced(random.below(frames.length + 1), 0, random.of(from))
}

const invent: Change = (frames, _others, random) => {
  const type = random.below(random.of([10, 10, 17, 256]))
  const lengths = [0, 1, 4, 5, 8, 8, 6, 12, random.below(40)]
  const payload = Buffer.from({ length: random.of(lengths) } as ArrayLike<number>)
  for (let i = 0; i < payload.length; i++) payload[i] = random.of([0, 0, 0, 1, 0x80, 0xff, random.below(256)])
  const one = { type, flags: random.of(FLAGS), stream: streamNumber(random), payload }
  return frames.toSpliced(random.below(frames.length + 1), 0, one)
}

/** Adds a field to a block, as a literal that leaves the table as it is. */
const addField: Change = (frames, _others, random) => {
  const places = [...frames.keys()].filter(
    (place) => frames[place]!.type === HEADERS && (frames[place]!.flags & PADDED) === 0,
  )
  if (places.length === 0) return frames
  const at = random.of(places)
  const { payload } = frames[at]!
  const block = [payload, fieldBlock(random.of(FIELDS))]
  return frames.with(at, { ...frames[at]!, payload: Buffer.concat(block) })
}

const alter =
  (change: (one: Frame, random: Random) => Frame): Change =>
  (frames, _others, random) => {
    if (frames.length === 0) return frames
    const at = random.below(frames.length)
    return frames.with(at, change(frames[at]!, random))
  }

const CHANGES: readonly Change[] = [
  ...[drop, double, move, bring, invent, invent, addField, addField],
  alter((one, random) => ({ ...one, type: random.below(11) })),
  alter((one, random) => ({ ...one, flags: one.flags ^ (1 << random.of([0, 0, 2, 2, 3, 5, 7])) })),
  alter((one, random) => ({ ...one, stream: streamNumber(random) })),
  alter((one, random) => ({
    ...one,
    payload: one.payload.subarray(0, random.below(one.payload.length + 1)),
  })),
  alter((one, random) => ({
    ...one,
    payload: Buffer.concat([one.payload, Buffer.alloc(random.below(9), random.below(256))]),
  })),
  alter(flip),
  alter(flip),
  alter(flip),
]

function flip(one: Frame, random: Random): Frame {
  const payload = Buffer.from(one.payload)
  if (payload.length > 0)
    payload[random.below(Math.min(payload.length, random.of([8, 60, 1e6])))]! ^= 1 << random.below(8)
  return { ...one, payload }
}

function streamNumber(random: Random): number {
  return random.of([0, 0, 1, 1, 3, 5, 2, 7, 9, 21, random.below(300), 0x7fff_ffff])
}

const FIELDS: readonly (readonly string[])[] = [
  ['host', 'a'],
  ['host', 'b'],
  ['host', ''],
  ['content-length', '0'],
  ['content-length', '5'],
  ['content-length', '+5'],
  ['content-length', '5, 5'],
  ['content-length', '18446744073709551621'],
  ['content-length', ''],
  ['transfer-encoding', 'chunked'],
  ['connection', 'close'],
  ['proxy-connection', 'close'],
  ['upgrade', 'h2c'],
  ['te', 'trailers'],
  ['te', 'Trailers'],
  ['te', 'gzip'],
  ['expect', '100-continue'],
  ['trailer', 'x-sum'],
  ['cookie', 'a=1; b=2'],
  ['cookie', ''],
  ['x-tab', 'a\tb'],
  ['x-blank', ' a '],
  ['x-line', 'a\r\nb: c'],
  ['x-null', 'a\0b'],
  ['x-delete', '\x7f'],
  ['x-high', '\x80\xff'],
  ['X-Capital', 'a'],
  ['x blank', 'a'],
  ['x:colon', 'a'],
  ['', 'a'],
  [':path', '/b'],
  [':method', 'GET'],
  [':authority', 'b'],
  [':scheme', 'ftp'],
  [':status', '200'],
  [':protocol', 'websocket'],
  [':unknown', 'a'],
]
const FLAGS = [0, 0, 1, 4, 5, 5, 8, 9, 0x20, 0x25, 0xff]
const PADDED = 8
