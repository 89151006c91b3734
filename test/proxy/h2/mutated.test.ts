import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { test } from 'tap'
import type { Exchange } from '../../../src/proxy/connection/exchange.ts'
import { dialHttp2 } from '../../hostile/http2-peer.ts'
import { until } from '../../until.ts'
import { answerText, type Front, startFront } from '../front.ts'
import { PREFACE } from '../http2-frames.ts'
import { type Allowance, faultsOf } from './judge.ts'
import { type ConversationPlan, conversation, scriptOf } from './random-conversation.ts'

/** What is done to the frames of a conversation, each at a place of its own. */
interface Mutation {
  readonly kind: 'byte' | 'cut' | 'twice' | 'swap' | 'stream' | 'type' | 'flags' | 'length'
  readonly frame: number
  readonly at: number
  readonly value: number
}

const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom('byte', 'byte', 'cut', 'twice', 'swap', 'stream', 'type', 'flags', 'length'),
  frame: fc.nat(60),
  at: fc.nat(400),
  value: fc.nat(255),
})

const RUNS = Number(process.env['H2_RUNS'] ?? 150)
const END_MS = 20_000

class EveryStream extends Set<number> {
  override has(stream: number): boolean {
    return stream % 2 === 1
  }
}

/** What a client may have allowed is not known here. */
const ANYTHING: Allowance = {
  frameBytes: 16_384,
  initialWindow: Number.POSITIVE_INFINITY,
  granted: new Map([[0, Number.POSITIVE_INFINITY]]),
  settingsSent: Number.POSITIVE_INFINITY,
  opened: new EveryStream(),
}
const NAME = /^(?::(?:method|path|scheme|authority)|[!#$%&'*+\-.^_`|~0-9a-z]+)$/
const VALUE = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/
const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TARGET = /^(?:\/[\x21-\x7e]*|\*)$/

test('HTTP/2: frames that are changed anyhow end in nothing worse than an error', async (t) => {
  const oddities: string[] = []
  const front = await startFront({
    tls: null,
    limits: { h2ResetBurst: 20, streamsPerConnectionMax: 6 },
    request: (exchange) => serve(exchange, oddities),
  })
  t.teardown(() => front.close())
  const mutations = fc.array(mutation, { minLength: 1, maxLength: 6 })
  const property = fc.asyncProperty(conversation, mutations, async (plan, changes) => {
    await converse(front, plan, changes)
    assert.deepEqual(oddities, [])
  })
  await fc.assert(property, { numRuns: RUNS, endOnFailure: true })
})

async function converse(front: Front, plan: ConversationPlan, changes: readonly Mutation[]): Promise<void> {
  const bytes = Buffer.concat([PREFACE, ...changed(scriptOf(plan).frames, changes)])
  const peer = await dialHttp2(front.port, { isTls: false })
  try {
    for (let at = 0, turn = 0; at < bytes.length && !peer.isClosed; turn++) {
      const end = at + plan.cuts[turn % plan.cuts.length]!
      peer.write(bytes.subarray(at, end))
      at = end
      if (turn % 3 === 0) await setImmediate()
    }
    peer.socket.end()
    await peer.gone()
    assert.deepEqual(faultsOf(peer.frames, ANYTHING), [])
  } finally {
    peer.socket.destroy()
  }
  const { listener } = front
  await until(() => listener.counts.streams === 0 && listener.counts.connections === 0, END_MS)
}

function changed(frames: readonly Buffer[], changes: readonly Mutation[]): Buffer[] {
  const list = frames.map((frame) => Buffer.from(frame))
  for (const { kind, frame, at, value } of changes) {
    const index = frame % list.length
    const bytes = list[index]!
    if (bytes.length < 9) continue
    switch (kind) {
      case 'byte':
        bytes[at % bytes.length] = value
        break
      case 'cut':
        list[index] = Buffer.concat([bytes, bytes.subarray(0, at % bytes.length)])
        break
      case 'twice':
        list.splice(index, 0, bytes)
        break
      case 'swap':
        list.push(...list.splice(index, 1))
        break
      case 'stream':
        bytes[8] = value % 20
        break
      case 'type':
        bytes[3] = value % 18
        break
      case 'flags':
        bytes[4] = value
        break
      case 'length':
        bytes[2] = value
    }
  }
  return list
}

function serve(exchange: Exchange, oddities: string[]): void {
  const { rawHeaders, method, target } = exchange.head
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name, value] = [rawHeaders[i]!, rawHeaders[i + 1]!]
    if (!NAME.test(name) || !VALUE.test(value))
      oddities.push(`${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  }
  if (!METHOD.test(method) || !TARGET.test(target)) oddities.push(JSON.stringify([method, target]))
  const { body } = exchange
  const answer = () => answerText(exchange, 'x'.repeat(target.length * 5000))
  if (exchange.bodyLength === 0 || body.readableEnded || target.length % 2 === 0) return answer()
  body.on('error', () => undefined)
  body.on('end', answer).resume()
}
