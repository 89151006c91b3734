import assert from 'node:assert/strict'
import http2 from 'node:http2'
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { Random } from '../fuzz/mutate.ts'
import { type Front, startFront } from '../proxy/front.ts'
import { conversation, scriptOf } from '../proxy/h2/random-conversation.ts'
import { type Frame, framesOf, PREFACE } from '../proxy/http2-frames.ts'
import {
  goesOn,
  KNOWN_ENDS,
  type Reading,
  unitsOf,
  withoutIgnored,
  withoutReserved,
  wrongIn,
} from './http2-differences.ts'
import { mutateFrames, written } from './http2-mutations.ts'
import { type Reader, startReader } from './http2-readers.ts'

/**
 * `H2_FUZZ_SECONDS=1200 H2_FUZZ_SEED=7 npx tap --timeout=2000 …` runs longer, on other frames. `H2_FUZZ_INPUT=HEX` judges
 * the input that a failure has printed.
 */
const SECONDS = Number(process.env['H2_FUZZ_SECONDS'] ?? 20)
const SEED = Number(process.env['H2_FUZZ_SEED'] ?? 1)
const INPUT = process.env['H2_FUZZ_INPUT']
const PAIRS = 6

test('HTTP/2: what nghttp2 refuses is refused, and nghttp2 and llhttp read the rest as we do', {
  timeout: 7_200_000,
}, async (t) => {
  if (INPUT !== undefined) {
    const own = await startReader(t, 'own')
    const pair = new Pair(own, await startReader(t, 'node'))
    return assert.equal(await pair.judge(Buffer.from(INPUT, 'hex')), null)
  }
  const seeds = [...(await recorded(t)), ...made()]
  const random = new Random(SEED)
  const endMs = Date.now() + SECONDS * 1000
  let inputs = 0
  let refused = 0
  const work = async (): Promise<void> => {
    const pair = new Pair(await startReader(t, 'own'), await startReader(t, 'node'))
    while (Date.now() < endMs) {
      const bytes = mutateFrames(random.of(seeds), seeds, random)
      const wrong = await pair.judge(bytes)
      inputs++
      if (pair.own.end !== null) refused++
      assert.equal(wrong, null, `${wrong}: ${bytes.toString('hex')}`)
    }
  }
  await Promise.all(Array.from({ length: PAIRS }, work))
  t.comment(`${inputs} inputs, ${refused} of them ended the connection`)
  assert.ok(refused > inputs / 20 && refused < inputs * 0.9)
})

/** Our server and nghttp2, which read the same frames. */
class Pair {
  /** What they did with the last ones. */
  own!: Reading
  node!: Reading
  readonly #readers: readonly [own: Reader, node: Reader]

  constructor(own: Reader, node: Reader) {
    this.#readers = [own, node]
  }

  /** What is wrong with our server's reading, or `null`. */
  async judge(bytes: Buffer): Promise<string | null> {
    const frames = framesOf(bytes)
    const wrong = await this.#compare(frames, withoutIgnored(frames))
    if (wrong === null || !goesOn(this.own, this.node)) return wrong
    const part: Frame[] = []
    for (const unit of unitsOf(withoutIgnored(frames))) {
      const before = part.map(withoutReserved)
      part.push(...unit)
      // What comes before the unit at which nghttp2 ends the connection is to be read alike.
      const wrongPart = await this.#compare(part, part)
      if (wrongPart === null) continue
      const { own, node } = this
      if (!goesOn(own, node)) return wrongPart
      const known = KNOWN_ENDS.find(
        ({ code, explains }) => code === node.end && explains(withoutReserved(unit[0]!), before, own),
      )
      return known === undefined ? wrongPart : null
    }
    return wrong
  }

  /** `null` as soon as they agree; what is wrong if they never do. */
  async #compare(forOwn: readonly Frame[], forNode: readonly Frame[]): Promise<string | null> {
    const [own, node] = this.#readers
    await Promise.all([own.send(written(forOwn)), node.send(written(forNode))])
    for (let wait = 1; ; wait *= 2) {
      // What a server does in its next turns belongs to it.
      await sleep(wait)
      this.own = own.reading()
      this.node = node.reading()
      const wrong = wrongIn(forOwn.map(withoutReserved), this.own, this.node)
      if (wrong !== null && wait <= LATE_MS) continue
      own.end()
      node.end()
      return wrong
    }
  }
}

function made(): Frame[][] {
  return fc.sample(conversation, { numRuns: 300, seed: SEED }).map((plan) => {
    const { frames } = scriptOf({ ...plan, requests: plan.requests.slice(0, 3) })
    return framesOf(Buffer.concat(frames)).filter(({ payload }) => payload.length < 2000)
  })
}

/** What node:http2 says as a client. */
async function recorded(t: Test): Promise<Frame[][]> {
  const front = await startFront({ tls: null })
  t.teardown(() => front.close())
  const all: Frame[][] = []
  for (let count = 1; count <= 4; count++) all.push(await record(front, count))
  return all
}

async function record(front: Front, count: number): Promise<Frame[]> {
  const chunks: Buffer[] = []
  const relay = net.createServer((socket) => {
    const onward = net.connect(front.port, '127.0.0.1')
    socket
      .on('data', (bytes: Buffer) => chunks.push(bytes))
      .pipe(onward)
      .pipe(socket)
  })
  await once(relay.listen(0, '127.0.0.1'), 'listening')
  const session = http2.connect(`http://127.0.0.1:${(relay.address() as net.AddressInfo).port}`)
  for (let i = 0; i < count; i++) {
    const stream = session.request(
      { ':method': i % 2 ? 'POST' : 'GET', ':path': `/${i}`, cookie: ['a=1', 'b=2'], 'user-agent': 'a b' },
      { waitForTrailers: i > 2, endStream: i % 2 === 0 },
    )
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '7' }))
    if (i % 2) stream.end('hello')
    await once(stream.resume(), 'end')
  }
  session.close()
  await once(session, 'close')
  relay.close()
  return framesOf(Buffer.concat(chunks).subarray(PREFACE.length))
}

const LATE_MS = 500
