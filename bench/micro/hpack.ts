import { HpackDecoder } from '../../src/wire/h2/hpack-decoder.ts'
import { HpackEncoder } from '../../src/wire/h2/hpack-encoder.ts'
import { browserHeaders } from './browser-headers.ts'

/**
 * `npm run bench:hpack`: the time to decode a browser's page request and to encode an app's response, the first of a
 * connection and a repeated one. All take turns in each round; the figure is the best round.
 */
function main(): void {
  const best = MEASURED.map(() => Number.POSITIVE_INFINITY)
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, { run }] of MEASURED.entries()) {
      const from = process.hrtime.bigint()
      for (let n = 0; n < RUNS; n++) run()
      best[i] = Math.min(best[i]!, Number(process.hrtime.bigint() - from) / RUNS)
    }
  }
  process.stdout.write(`${'ns'.padStart(WIDTH + 8)}${'bytes'.padStart(8)}${'fields'.padStart(8)}\n`)
  for (const [i, { name, bytes, fields }] of MEASURED.entries()) {
    const figures = [best[i]!.toFixed(0), `${bytes}`, `${fields}`].map((figure) => figure.padStart(8))
    process.stdout.write(`${name.padEnd(WIDTH)}${figures.join('')}\n`)
  }
}

interface Measured {
  readonly name: string
  readonly bytes: number
  readonly fields: number
  run(): void
}

function decoding(name: string, before: readonly Uint8Array[], block: Uint8Array): Measured {
  const connection = new HpackDecoder()
  for (const each of before) connection.decode(each, [])
  const list: string[] = []
  // A first block changes the table, so that it needs a new decoder.
  const decode = () => {
    const decoder = before.length === 0 ? new HpackDecoder() : connection
    list.length = 0
    if (decoder.decode(block, list) !== 'whole') throw new Error(name)
  }
  decode()
  return { name, bytes: block.length, fields: list.length / 2, run: decode }
}

function encoding(name: string, before: Fields | null, fields: Fields): Measured {
  const connection = new HpackEncoder()
  if (before !== null) encode(connection, before)
  const run = () => encode(before === null ? new HpackEncoder() : connection, fields)
  return { name, bytes: run().length, fields: fields.length / 2 + 1, run }
}

/** Each answer of a connection in a new second. */
function encodingNewDates(name: string): Measured {
  const encoder = new HpackEncoder()
  const fields = [...RESPONSE]
  const from = Date.UTC(2026, 10, 26, 18)
  const dates = Array.from({ length: ROUNDS * RUNS }, (_, second) =>
    new Date(from + 1000 * second).toUTCString(),
  )
  let second = 0
  const run = () => {
    fields[5] = dates[second++ % dates.length]!
    return encode(encoder, fields)
  }
  run()
  return { name, bytes: run().length, fields: fields.length / 2 + 1, run }
}

function encode(encoder: HpackEncoder, fields: Fields): Uint8Array {
  encoder.begin(9)
  encoder.status(200)
  for (let i = 0; i < fields.length; i += 2) encoder.field(fields[i]!, fields[i + 1]!)
  return encoder.end()
}

type Fields = readonly string[]

/** The same request twice, as a client with a dynamic table encodes it. */
function requestBlocks(): [first: Uint8Array, again: Uint8Array] {
  const encoder = new HpackEncoder()
  const blocks = [0, 1].map(() => {
    encoder.begin(0)
    for (let i = 0; i < REQUEST.length; i += 2) encoder.field(REQUEST[i]!, REQUEST[i + 1]!)
    return Buffer.from(encoder.end())
  })
  return blocks as [Buffer, Buffer]
}

const ROUNDS = 100
const RUNS = 2000
const WIDTH = 34

const REQUEST: Fields = [
  ...[':method', 'GET', ':authority', 'shop.example.test', ':scheme', 'https', ':path', '/cart?id=7'],
  // Without Host and Connection.
  ...browserHeaders('')
    .slice(4)
    .map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text)),
]

const RESPONSE: Fields = [
  ...[
    'content-type',
    'text/html; charset=utf-8',
    'content-length',
    '18423',
    'date',
    'Thu, 26 Nov 2026 18:00:00 GMT',
  ],
  ...['server', 'gunicorn', 'cache-control', 'private, max-age=0', 'vary', 'Accept-Encoding, Cookie'],
  ...['etag', '"5f1e0c9ad2b71234"', 'x-frame-options', 'DENY', 'x-content-type-options', 'nosniff'],
  ...['strict-transport-security', 'max-age=31536000; includeSubDomains'],
  ...['set-cookie', 'session=5f1e0c9ad2b7; Path=/; Secure; HttpOnly; SameSite=Lax'],
]

const [first, again] = requestBlocks()
const MEASURED: readonly Measured[] = [
  decoding('decode the first request', [], first),
  decoding('decode the same again', [first], again),
  encoding('encode the first response', null, RESPONSE),
  encoding('encode the same again', RESPONSE, RESPONSE),
  encodingNewDates('encode the same with a new date'),
]

main()
