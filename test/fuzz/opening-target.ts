import assert from 'node:assert/strict'
import { Http2Opening } from '../../src/proxy/http/http2-opening.ts'
import { ByteQueue } from '../../src/wire/byte-queue.ts'
import { frame, headers, PREFACE, priority, settings, windowUpdate } from '../proxy/http2-frames.ts'
import { cut } from './cut.ts'

/** How a client opens HTTP/2 is the same however its bytes are cut, and of what follows the first HEADERS nothing is read. */
export function opening(bytes: Buffer): void {
  const whole = read([bytes])
  assert.deepEqual(read(cut(bytes)), whole)
  if (bytes.length <= EACH_BYTES_MAX)
    assert.deepEqual(read(Array.from(bytes, (byte) => Buffer.of(byte))), whole)
  const { text, isDone } = whole
  if (text !== null) assert.match(text, FINGERPRINT)
  // Once it is known, nothing that follows changes it.
  if (isDone) assert.deepEqual(read([Buffer.concat([bytes, MORE])]), whole)
}

function read(pieces: readonly Uint8Array[]) {
  const queue = new ByteQueue()
  const opening = new Http2Opening()
  let isDone = false
  for (const piece of pieces) {
    const lent = Buffer.from(piece)
    queue.push(lent)
    isDone = opening.read(queue)
    queue.keep()
    lent.fill(0xee) // its owner's again
    if (isDone) break
  }
  const { said, hasSettings } = opening
  return { isDone, hasSettings, said, text: opening.print(PSEUDO_HEADERS).http2 }
}

export function openingSeeds(): Buffer[] {
  const first = settings([1, 65_536], [2, 0], [4, 6_291_456], [0x0a0a, 7])
  const many = Array.from({ length: 32 }, (_, id) => [id, id] as const)
  const openings = [
    [first],
    [first, windowUpdate(15_663_105), headers(1, PSEUDO_HEADERS)],
    [first, windowUpdate(1, 3), priority(3, 0, 200), priority(5, 3, 1, true), headers(1, PSEUDO_HEADERS)],
    [settings(), frame(4, 1, 0), settings([3, 1]), frame(6, 0, 0, Buffer.alloc(8)), windowUpdate(7)],
    [settings(...many), ...new Array<Buffer>(31).fill(priority(3, 0, 0)), priority(7, 0, 0)],
    [windowUpdate(7), first],
    [first, frame(10, 0, 0, Buffer.alloc(300)), headers(1, PSEUDO_HEADERS)],
  ]
  return openings.map((frames) => Buffer.concat([PREFACE, ...frames]))
}

const PSEUDO_HEADERS = [':method', 'GET', ':authority', 'a', ':scheme', 'https', ':path', '/']
const FINGERPRINT =
  /^(?:\d+:\d+(?:;\d+:\d+)*)?\|(?:00|\d+)\|(?:0|\d+:[01]:\d+:\d+(?:,\d+:[01]:\d+:\d+)*)\|m,a,s,p$/
const MORE = Buffer.concat([settings([9, 9]), windowUpdate(9), priority(9, 9, 9)])
const EACH_BYTES_MAX = 600
