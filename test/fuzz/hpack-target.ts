import assert from 'node:assert/strict'
import { HpackDecoder } from '../../src/wire/h2/hpack-decoder.ts'
import { HpackEncoder } from '../../src/wire/h2/hpack-encoder.ts'
import { fieldBlock } from '../proxy/http2-frames.ts'
import { hex, ModelDecoder } from '../wire/h2/hpack-model.ts'
import { Nghttp2Decoder } from '../wire/h2/nghttp2.ts'
import { EXAMPLES } from '../wire/h2/rfc7541.ts'

/**
 * The header blocks of a connection: each list is what the model reads. What nghttp2 refuses is refused, and a request
 * that it shows has the same fields. What was read, encoded and read again is the same.
 *
 * Each block follows a byte with its length.
 */
export async function hpack(bytes: Buffer): Promise<void> {
  const nghttp2 = new Nghttp2Decoder()
  const model = new ModelDecoder(TABLE_BYTES_MAX)
  const decoder = new HpackDecoder({ tableBytesMax: TABLE_BYTES_MAX, listBytesMax: 1e6, fieldsMax: 1e6 })
  const encoder = new HpackEncoder()
  const reader = new HpackDecoder()
  try {
    for (const block of blocksIn(bytes)) {
      const list: string[] = []
      const decoded = decoder.decode(block, list)
      assert.equal(decoded, model.decode(block) === null ? 'malformed' : 'whole')
      const theirs = await nghttp2.decode(block)
      if (decoded === 'malformed') return assert.equal(decoder.decode(block, []), 'malformed')
      assert.equal(theirs.kind, decoded)
      if (theirs.kind === 'whole' && theirs.list !== null) isPart(theirs.list, list)
      again(encoder, reader, list)
    }
  } finally {
    nghttp2.close()
  }
}

/** nghttp2 leaves out fields that are invalid in HTTP. */
function isPart(theirs: readonly string[], ours: readonly string[]): void {
  let at = 0
  for (let i = 0; i < ours.length; i += 2)
    if (ours[i] === theirs[at] && ours[i + 1] === theirs[at + 1]) at += 2
  assert.equal(at, theirs.length)
}

function again(encoder: HpackEncoder, reader: HpackDecoder, list: readonly string[]): void {
  const read: string[] = []
  encoder.allow(list.length * 50)
  encoder.begin(0)
  for (let i = 0; i < list.length; i += 2) encoder.field(list[i]!, list[i + 1]!)
  assert.equal(reader.decode(encoder.end(), read), 'whole')
  assert.deepEqual(read, list)
}

function blocksIn(bytes: Buffer): Buffer[] {
  const blocks: Buffer[] = []
  for (let at = 0; at < bytes.length; at += 1 + bytes[at]!)
    blocks.push(bytes.subarray(at + 1, at + 1 + bytes[at]!))
  return blocks
}

export function hpackSeeds(): Buffer[] {
  const examples = EXAMPLES.map(({ blocks }) => blocks.map(([block]) => hex(block)))
  const request = [':method', 'GET', ':scheme', 'http', ':authority', 'a', ':path', '/', 'x-a', 'b']
  const requests = [
    [fieldBlock(request), fieldBlock(request)],
    [hex('3fe11f20828684 4001610162 4001630164'), hex('828684bebf'), hex('3e3fe11f828684410161 be')],
    [hex('8286844003782d6183ffe0c7'), hex('828684 be 7e83fffffb'), hex('828684 0f2f0161 1f00ff8001')],
  ]
  return [...examples, ...requests].map((blocks) =>
    Buffer.concat(blocks.flatMap((block) => [Buffer.of(block.length), block])),
  )
}

const TABLE_BYTES_MAX = 4096
