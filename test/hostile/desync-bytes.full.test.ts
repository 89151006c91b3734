import assert from 'node:assert/strict'
import { test } from 'tap'
import { skipped } from '../e2e/programs.ts'
import { MARK } from './desync-case.ts'
import { type Door, FRONTS, type Gate, IS_WHOLE, inTime, startGate } from './desync-gate.ts'
import { type Message, MessageReader, REQUESTS, valuesOf } from './desync-messages.ts'
import { type Seen, UPSTREAMS } from './desync-upstreams.ts'

/** In the target, where no byte is changed. */
const NAMED = `-${MARK}-`
const LAST = 'Connection: close\r\n\r\n'
const HEAD = `POST /a${NAMED}z HTTP/1.1\r\nHost: abc\r\nAb: v w\r\n`

/** Two requests that are fine, each the last of its connection. */
const TEMPLATES: Readonly<Record<string, string>> = {
  length: `${HEAD}Content-Length: 5\r\n${LAST}hello`,
  chunks: `${HEAD}Transfer-Encoding: chunked\r\n${LAST}5;x=y\r\nhello\r\n0\r\nCd: e\r\n\r\n`,
}

/** What follows, and no reader may take for a request; long enough for any length that a byte can make of another. */
const BEHIND = `GET /s${NAMED}z HTTP/1.1\r\nHost: abc\r\n\r\n${'x'.repeat(2000)}\r\n\r\n`

const VALUES = IS_WHOLE
  ? Array.from({ length: 256 }, (_, value) => value)
  : Array.from('\0\t\n\x0b\r !",:;\x7f\x80\x85\xa0\xff', (character) => character.charCodeAt(0))

for (const [front, settings] of Object.entries(FRONTS)) {
  for (const [name, start] of Object.entries(UPSTREAMS)) {
    test(`${front} before ${name}: any byte anywhere makes one request, or none`, {
      skip: name === 'nginx' || name === 'apache2' ? skipped(name) : false,
      timeout: 3_000_000,
    }, async (t) => {
      const upstream = await start(t)
      const gate = await startGate(t, upstream.url, settings)
      const variants = variantsFor(name)
      const lanes = Array.from({ length: 8 }, async (_, lane) => {
        for (let i = lane; i < variants.length; i += 8) await send(gate, variants[i]!, i)
      })
      await Promise.all(lanes)
      const sightings = (await gate.sightings()).map(({ method, path }) => `${method} ${path}`)
      const seen = await upstream.seen()
      assert.deepEqual(upstream.faults, [])
      const found = Map.groupBy(seen, ({ line }) => markIn(line))
      const decided = Map.groupBy(sightings, markIn)
      let served = 0
      for (const [index, variant] of variants.entries()) {
        const mark = markOf(index)
        const whole = (found.get(mark) ?? []).filter(({ isWhole }) => isWhole !== false)
        const [request, ...more] = whole
        assert.deepEqual(more, [], `${variant.title}: one request`)
        assert.ok((decided.get(mark) ?? []).length <= 1, `${variant.title}: one decision`)
        if (request !== undefined) {
          assert.equal(decided.get(mark)!.length, 1, `${variant.title}: it was decided on`)
          assertMeant(request, variant, mark)
          served++
        }
        found.delete(mark)
        decided.delete(mark)
      }
      assert.deepEqual([[...found], [...decided]], [[], []], 'of no variant')
      assert.ok(served > 20 && served < variants.length / 2, `${served}`)
      t.comment(`${variants.length} connections, ${served} requests served`)
    })
  }
}

interface Variant {
  readonly title: string
  readonly door: Door
  readonly text: string
  /** Without the byte. */
  readonly template: string
}

/** Each byte before, and instead of, each byte of a template; in a short run, each upstream gets a sample. */
function variantsFor(name: string): Variant[] {
  const share = Object.keys(UPSTREAMS).indexOf(name)
  const variants: Variant[] = []
  for (const [title, template] of Object.entries(TEMPLATES)) {
    for (const place of placesIn(template)) {
      if (!IS_WHOLE && place % 8 !== share) continue
      for (const value of VALUES) {
        for (const replaced of [0, 1]) {
          const byte = String.fromCharCode(value)
          const text = template.slice(0, place) + byte + template.slice(place + replaced)
          if (text.slice(0, text.indexOf(NAMED)).includes('?')) continue // a Sighting has no query, and so no name
          const where = `${title}, ${value} ${replaced === 1 ? 'for' : 'before'} byte ${place}`
          variants.push({ title: where, door: 'plain', text, template })
        }
      }
    }
  }
  return variants
}

/** Not in its name, and not in what makes it the last. */
function placesIn(template: string): number[] {
  const [mark, last] = [template.indexOf(NAMED), template.indexOf(LAST)]
  return Array.from({ length: template.length }, (_, place) => place).filter((place) => {
    const isInMark = place >= mark && place < mark + NAMED.length
    const isInLast = place >= last && place < last + LAST.length
    return !isInMark && !isInLast
  })
}

async function send(gate: Gate, { title, door, text }: Variant, index: number): Promise<void> {
  const peer = await gate.dial(door)
  peer.write((text + BEHIND).replaceAll(MARK, markOf(index)))
  await inTime(peer.closed, () => title)
}

/** As the letter has it; or as it was before, where it has none and the byte means nothing. */
function assertMeant(request: Seen, { title, text, template }: Variant, mark: string): void {
  const meanings = [text, template, withSingleBlanks(text)].map((each) =>
    read((each + BEHIND).replaceAll(MARK, mark)),
  )
  const isMeant = meanings.some((message) => message !== null && isSame(request, message))
  assert.ok(isMeant, `${title}: ${JSON.stringify(request)}`)
}

/** Several blanks in the first line are one to Node (24.21). */
function withSingleBlanks(text: string): string {
  const lineEnd = text.indexOf('\r\n')
  return text.slice(0, lineEnd).replace(/ +/g, ' ') + text.slice(lineEnd)
}

function isSame({ line, host, body }: Seen, message: Message): boolean {
  const [method, target] = message.start.split(' ')
  if (line !== `${method} ${target}`) return false
  if (host !== null && host !== valuesOf(message.fields, 'host')[0]) return false
  return body === null || body === message.body
}

function read(text: string): Message | null {
  try {
    const reader = new MessageReader(REQUESTS)
    reader.add(Buffer.from(text, 'latin1'))
    return reader.next()
  } catch {
    return null
  }
}

function markOf(index: number): string {
  return String(index).padStart(MARK.length, '0')
}

function markIn(line: string): string {
  return /-(\d{6})-/.exec(line)?.[1] ?? line
}
