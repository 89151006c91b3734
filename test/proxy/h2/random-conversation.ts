import fc from 'fast-check'
import { DATA, CONTINUATION, HEADERS, PING, RST_STREAM } from '../../hostile/http2-peer.ts'
import { fieldBlock, frame, getRequest, priority, settings, windowUpdate } from '../http2-frames.ts'
import { type Allowance, allowance } from './judge.ts'

/** One request, how it is cut into frames, and how it is answered. */
export interface RequestPlan {
  readonly method: 'GET' | 'POST' | 'HEAD'
  readonly fields: readonly string[]
  /** `null`: a head that ends its stream. */
  readonly body: readonly number[] | null
  readonly hasLength: boolean
  readonly trailers: readonly string[]
  readonly padding: number
  readonly hasPriority: boolean
  readonly blockCuts: readonly number[]
  /** After which of its frames the client resets the stream. */
  readonly resetAfter: number | null
  readonly answer: AnswerPlan
}

export interface AnswerPlan {
  readonly status: number
  readonly pieces: readonly number[]
  readonly hasLength: boolean
  readonly trailers: readonly string[]
  readonly fields: readonly string[]
  readonly interim: boolean
  /** Before the body of the request has been read. */
  readonly isEarly: boolean
}

/** What a client does between its requests. */
export type Aside =
  | { readonly kind: 'settings'; readonly id: number; readonly value: number }
  | { readonly kind: 'window'; readonly stream: number; readonly by: number }
  | { readonly kind: 'other'; readonly frame: Buffer }

export interface ConversationPlan {
  readonly requests: readonly RequestPlan[]
  readonly asides: readonly Aside[]
  /** Which source is next: a request by its place, or the asides. */
  readonly order: readonly number[]
  /** Where the bytes are cut. */
  readonly cuts: readonly number[]
}

const name = fc.constantFrom(
  'x-a',
  'x-b',
  'accept',
  'cookie',
  'user-agent',
  'x-long-name-of-a-field',
  'priority',
)
const value = fc.oneof(
  fc.constantFrom(
    '',
    '1',
    'u=1',
    'u=7, i',
    'a b',
    'text/html, */*;q=0.1',
    '\xe4\xff',
    'x'.repeat(127),
    'y'.repeat(300),
  ),
  fc.string({ maxLength: 30 }).map((text) => text.trim()),
)
const fields = fc.array(fc.tuple(name, value), { maxLength: 6 }).map((list) => list.flat())
const trailers = fc.constantFrom<readonly string[]>([], ['x-sum', '7'], ['x-a', '1', 'x-b', ''])
const sizes = fc.array(fc.oneof(fc.nat(30), fc.nat(9000)), { maxLength: 4 })

const answer: fc.Arbitrary<AnswerPlan> = fc.record({
  status: fc.constantFrom(200, 200, 201, 404, 503),
  pieces: fc.array(fc.oneof(fc.nat(100), fc.nat(40_000)), { maxLength: 4 }),
  hasLength: fc.boolean(),
  trailers,
  fields: fc
    .array(
      fc.tuple(
        fc.constantFrom('X-One', 'x-two', 'Content-Type', 'Server'),
        fc.constantFrom('a', '', 'b'.repeat(200), 'c d'),
      ),
      { maxLength: 5 },
    )
    .map((list) => list.flat()),
  interim: fc.boolean(),
  isEarly: fc.boolean(),
})

const request: fc.Arbitrary<RequestPlan> = fc.record({
  method: fc.constantFrom('GET', 'POST', 'HEAD'),
  fields,
  body: fc.option(sizes),
  hasLength: fc.boolean(),
  trailers,
  padding: fc.constantFrom(0, 0, 1, 30, 255),
  hasPriority: fc.boolean(),
  blockCuts: fc.array(fc.nat(200), { maxLength: 4 }),
  resetAfter: fc.option(fc.nat(5), { freq: 5 }),
  answer,
})

const aside: fc.Arbitrary<Aside> = fc.oneof(
  fc.record({
    kind: fc.constant('settings' as const),
    id: fc.constantFrom(1, 4, 5, 0xee),
    value: fc.oneof(fc.nat(200), fc.nat(70_000)),
  }),
  fc.record({
    kind: fc.constant('window' as const),
    stream: fc.nat(12),
    by: fc.integer({ min: 1, max: 30_000 }),
  }),
  fc
    .constantFrom(
      frame(PING, 0, 0, Buffer.from('abcdefgh')),
      frame(0xee, 0xff, 0, Buffer.alloc(20)),
      priority(41, 0, 20),
      frame(16, 0, 0, Buffer.concat([Buffer.of(0, 0, 0, 1), Buffer.from('u=2, i')])),
    )
    .map((frame) => ({ kind: 'other' as const, frame })),
)

export const conversation: fc.Arbitrary<ConversationPlan> = fc.record({
  requests: fc.array(request, { minLength: 1, maxLength: 8 }),
  asides: fc.array(aside, { maxLength: 12 }),
  order: fc.array(fc.nat(8), { maxLength: 60 }),
  cuts: fc.array(fc.oneof(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 5000 })), {
    minLength: 1,
    maxLength: 8,
  }),
})

export interface Script {
  /** Frames in the order in which they are sent, behind the preface. */
  readonly frames: readonly Buffer[]
  readonly allowed: Allowance
}

/** The frames of a plan, each request's in order, and in the end windows wide enough for everything. */
export function scriptOf(plan: ConversationPlan): Script {
  const allowed = allowance()
  allowed.settingsSent = 1
  const sources = plan.requests.map((request, index) => framesOf(request, streamOf(index)))
  const asides = [...plan.asides]
  const frames: Buffer[] = [settings()]
  // Streams are opened in the order of their numbers.
  let opened = 0
  const isOpen = (index: number) => index < opened
  const take = (at: number) => {
    if (at >= sources.length) return takeAside(asides, frames, allowed, opened)
    const index = isOpen(at) ? at : opened
    const next = sources[index]?.shift()
    if (next === undefined) return
    if (index === opened) {
      opened++
      allowed.opened.add(streamOf(index))
      // The whole block: nothing may come between its frames.
      frames.push(Buffer.concat([next, ...sources[index]!.splice(0, blockFrames(sources[index]!))]))
    } else frames.push(Buffer.concat([next, ...sources[index]!.splice(0, blockFrames(sources[index]!))]))
  }
  for (const at of plan.order) take(at)
  while (asides.length > 0) take(sources.length)
  for (let index = 0; index < sources.length; index++) while (sources[index]!.length > 0) take(index)
  for (const stream of [0, ...allowed.opened]) grant(frames, allowed, stream, WIDE)
  return { frames, allowed }
}

export function streamOf(index: number): number {
  return 2 * index + 1
}

export function isReset({ resetAfter }: RequestPlan): boolean {
  return resetAfter !== null
}

function takeAside(asides: Aside[], frames: Buffer[], allowed: Allowance, opened: number): void {
  const aside = asides.shift()
  if (aside === undefined) return
  if (aside.kind === 'other') return void frames.push(aside.frame)
  if (aside.kind === 'window') {
    const index = aside.stream - 1
    return grant(frames, allowed, index < 0 || index >= opened ? 0 : streamOf(index), aside.by)
  }
  const value = aside.id === 5 ? 16_384 + aside.value : aside.value
  if (aside.id === 5) allowed.frameBytes = Math.max(allowed.frameBytes, value)
  if (aside.id === 4) allowed.initialWindow = Math.max(allowed.initialWindow, value)
  allowed.settingsSent++
  frames.push(settings([aside.id, value]))
}

function grant(frames: Buffer[], allowed: Allowance, stream: number, by: number): void {
  allowed.granted.set(stream, (allowed.granted.get(stream) ?? 0) + by)
  frames.push(windowUpdate(by, stream))
}

/** How many CONTINUATION frames are next. */
function blockFrames(frames: readonly Buffer[]): number {
  const at = frames.findIndex((frame) => frame[3] !== CONTINUATION)
  return at === -1 ? frames.length : at
}

function framesOf(plan: RequestPlan, stream: number): Buffer[] {
  const { body, trailers } = plan
  const hasBody = body !== null
  const total = body?.reduce((sum, size) => sum + size, 0) ?? 0
  const length = hasBody && plan.hasLength ? ['content-length', String(total)] : []
  const head = getRequest(
    { ':method': plan.method, ':path': `/${(stream - 1) / 2}` },
    ...plan.fields,
    ...length,
  )
  const frames = blockOf(plan, stream, fieldBlock(head), !hasBody)
  if (hasBody) {
    for (const [index, size] of body.entries()) {
      const isLast = index === body.length - 1 && trailers.length === 0
      frames.push(dataOf(plan, stream, size, isLast))
    }
    if (trailers.length > 0) frames.push(...blockOf(plan, stream, fieldBlock(trailers), true))
    else if (body.length === 0) frames.push(frame(DATA, END_STREAM, stream))
  }
  if (plan.resetAfter === null) return frames
  const kept = frames.slice(0, plan.resetAfter + 1)
  // A block is not left in the middle.
  while (kept.length < frames.length && frames[kept.length]![3] === CONTINUATION)
    kept.push(frames[kept.length]!)
  return [...kept, frame(RST_STREAM, 0, stream, Buffer.of(0, 0, 0, 8))]
}

function blockOf(
  { blockCuts, padding, hasPriority }: RequestPlan,
  stream: number,
  block: Buffer,
  hasEnded: boolean,
): Buffer[] {
  const cuts = [...new Set(blockCuts.map((cut) => Math.min(cut, block.length)))].sort(
    (one, other) => one - other,
  )
  const pieces = [0, ...cuts].map((from, index) => block.subarray(from, cuts[index] ?? block.length))
  const flags = (hasEnded ? END_STREAM : 0) | (padding > 0 ? PADDED : 0) | (hasPriority ? HAS_PRIORITY : 0)
  return pieces.map((piece, index) => {
    const last = index === pieces.length - 1 ? END_HEADERS : 0
    if (index > 0) return frame(CONTINUATION, last, stream, piece)
    const payload = Buffer.concat([
      Buffer.alloc(padding > 0 ? 1 : 0, padding),
      Buffer.alloc(hasPriority ? 5 : 0),
      piece,
      Buffer.alloc(padding),
    ])
    return frame(HEADERS, flags | last, stream, payload)
  })
}

function dataOf({ padding }: RequestPlan, stream: number, size: number, hasEnded: boolean): Buffer {
  const flags = (hasEnded ? END_STREAM : 0) | (padding > 0 ? PADDED : 0)
  const payload = Buffer.concat([
    Buffer.alloc(padding > 0 ? 1 : 0, padding),
    Buffer.alloc(size, stream),
    Buffer.alloc(padding),
  ])
  return frame(DATA, flags, stream, payload)
}

const END_STREAM = 1
const END_HEADERS = 4
const PADDED = 8
const HAS_PRIORITY = 0x20
/** More than all answers together have. */
const WIDE = 10_000_000
