import assert from 'node:assert/strict'
import { checkHttp1 } from '../../src/proxy/connection/request-check.ts'
import { readCommonHead } from '../../src/wire/common-head.ts'
import { readRequests } from './llhttp.ts'

/**
 * Whatever the fast lane takes for a request, llhttp takes for the same one: the same method, target and fields, the same
 * end of its head and of its body, and the same wish for the connection. llhttp is strict, as in the robust lane.
 */
export function head(bytes: Buffer): void {
  const read = readCommonHead(bytes, null)
  // What the request before had in its fields changes nothing.
  for (const last of [...OTHERS, read].map((other) => other?.fields ?? null))
    assert.deepEqual(readCommonHead(bytes, last), read)
  if (read === null) return
  const { method, target, fields, end } = read
  const { rawHeaders, keepsAlive } = fields
  const own = bytes.subarray(0, end)
  const facts = checkHttp1(method, target, '11', rawHeaders, LIMITS)
  if (!facts.isGood) return // refused, by the robust lane
  assert.equal(facts.expectsContinue, false)
  assert.notEqual(facts.bodyLength, null)
  const length = facts.bodyLength!
  const wanted = { method, target, rawHeaders, keepsAlive, isUpgrade: false, bodyBytes: 0 }
  assert.deepEqual(heads(own.subarray(0, -1)), [], 'its head is whole before its end')
  assert.deepEqual(heads(own), [wanted])
  if (length > BODY_BYTES_MAX || !keepsAlive) return
  const followed = Buffer.concat([own, Buffer.alloc(length, 'x'), NEXT])
  assert.deepEqual(
    heads(followed).map(({ target, bodyBytes }) => [target, bodyBytes]),
    [
      [target, length],
      ['/next', 0],
    ],
  )
  // It reads no further than its end: what follows changes nothing.
  assert.deepEqual(readCommonHead(followed, null), read)
  for (const cut of [1, end >> 1, end - 1]) assert.equal(readCommonHead(bytes.subarray(0, cut), fields), null)
}

/** What llhttp makes of it; nothing where it is at fault in any of it. */
function heads(bytes: Buffer) {
  const { messages, isFault } = readRequests(bytes)
  if (isFault) return []
  return messages.map(({ method, target, rawHeaders, keepsAlive, isUpgrade, body }) => {
    return { method, target, rawHeaders, keepsAlive, isUpgrade, bodyBytes: body.length }
  })
}

const LIMITS = { requestLineBytesMax: 16_384, headerBytesMax: 65_536, headerCountMax: 200 }
const BODY_BYTES_MAX = 1000
const NEXT = Buffer.from('GET /next HTTP/1.1\r\nHost: a\r\n\r\n')
/** Heads whose fields begin or end like those of many others. */
const OTHERS = ['', 'Host: a\r\n', 'Connection: close\r\n', 'A: b\r\nHost: a\r\n'].map((fields) =>
  readCommonHead(Buffer.from(`GET / HTTP/1.1\r\n${fields}\r\n`), null),
)
