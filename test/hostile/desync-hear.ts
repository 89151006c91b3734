import assert from 'node:assert/strict'
import type { Peer } from '../proxy/front.ts'
import { data, getRequest, headers } from '../proxy/http2-frames.ts'
import { type Gate, inTime } from './desync-gate.ts'
import { Http2Peer } from './desync-http2-peer.ts'
import { answersIn, statusOf } from './desync-play.ts'
import { ownName } from './desync-upstreams.ts'

export type Method = 'GET' | 'HEAD' | 'POST'

/** What a client gets of an answer: all of it, or an error. */
export type Heard = { readonly status: number; readonly body: string } | 'broken'

/** Asks for `/lie`, and reads the answer by the letter: a line or a byte that does not belong is a fault. */
async function hearHttp1(gate: Gate, method: Method): Promise<Heard> {
  const peer = await gate.dial('plain')
  peer.write(`${method} /lie HTTP/1.1\r\nHost: a\r\n${method === 'POST' ? BODY : '\r\n'}`)
  const answers = () => answersIn(peer.bytes, [method], false)
  const isOver = peer
    .hears(() => answers().whole.length > 0)
    .then(
      () => {},
      () => {},
    )
  await inTime(isOver, () => peer.text)
  const { whole, rest } = answers()
  peer.socket.destroy()
  if (whole.length === 0) return 'broken'
  assert.deepEqual([whole.length, rest], [1, ''], 'one answer and no more')
  return { status: statusOf(whole[0]!), body: ourOwn(statusOf(whole[0]!), whole[0]!.body) }
}

async function hearHttp2(gate: Gate, method: Method): Promise<Heard> {
  const peer = await Http2Peer.open(gate, 'plain')
  const fields = getRequest({ ':method': method, ':path': '/lie' })
  peer.write(headers(1, fields, { hasEnded: method !== 'POST' }))
  if (method === 'POST') peer.write(data(1, 'hello'))
  const { status, body, end } = await peer.endOf(1)
  peer.close()
  if (end !== 'whole' || status === null) return 'broken'
  return { status, body: ourOwn(status, body) }
}

/** Whatever we say of it. */
function ourOwn(status: number, body: string): string {
  return status === 502 ? '' : body
}

/** One request whose answer must be its own. */
export async function ask(peer: Peer, method: (typeof METHODS)[number]): Promise<void> {
  const before = peer.byteCount
  peer.write(`${method} /bystander HTTP/1.1\r\nHost: a\r\n${method === 'GET' ? '\r\n' : BODY}`)
  const answers = () => answersIn(peer.bytes.subarray(before), [method], false).whole
  await inTime(
    peer.hears(() => answers().length > 0),
    () => `the bystander by ${method}`,
  )
  const own = ownName(method, '/bystander', method === 'GET' ? 0 : 5)
  assert.deepEqual(
    answers().map((answer) => [statusOf(answer), answer.body]),
    [[200, own]],
    `the bystander by ${method}`,
  )
}

export const METHODS = ['GET', 'POST', 'PUT'] as const
export const BODY = 'Content-Length: 5\r\n\r\nhello'
export const WAYS = { 'HTTP/1': hearHttp1, 'HTTP/2': hearHttp2 }
