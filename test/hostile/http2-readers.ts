import type { Test } from 'tap'
import type { Exchange } from '../../src/proxy/connection/exchange.ts'
import { OwnHttp2Exchange } from '../../src/proxy/http/h2/exchange.ts'
import { answerText, startFront } from '../proxy/front.ts'
import { PREFACE } from '../proxy/http2-frames.ts'
import type { Reading, Request } from './http2-differences.ts'
import { dialHttp2, type Http2Peer } from './http2-peer.ts'
import { misread } from './http2-translated.ts'

/** A server that is given frames, one connection after the other. */
export interface Reader {
  /** Until it has read them, or has closed the connection. */
  send(bytes: Buffer): Promise<void>
  reading(): Reading
  end(): void
}

export async function startReader(t: Test, server: 'own' | 'node'): Promise<Reader> {
  let requests: Request[] = []
  const front = await startFront({
    ...{ tls: null, options: { http2: server }, limits: { h2ResetBurst: 1_000 } },
    request: (exchange) => hear(exchange, (request) => requests.push(request)),
  })
  t.teardown(() => front.close())
  let peer: Http2Peer
  let isLate = false
  return {
    async send(bytes) {
      requests = []
      peer = await dialHttp2(front.port, { isTls: false })
      peer.write(PREFACE, bytes)
      isLate = false
      const read = peer.isRead().catch(() => (isLate = true))
      await Promise.race([read, peer.until(() => (peer.goaway ?? 0) !== 0).catch(() => undefined)])
    },
    reading: () => readingOf(peer, requests, isLate),
    end: () => peer.socket.destroy(),
  }
}

function readingOf(peer: Http2Peer, requests: readonly Request[], isLate: boolean): Reading {
  const resets = new Map<number, number>()
  const statuses = new Map<number, number>()
  for (const { type, stream, payload } of peer.frames) {
    if (type === 3) resets.set(stream, payload.readUInt32BE(0))
    const status = type === 1 ? peer.statusOf(stream) : null
    if (status !== null) statuses.set(stream, status)
  }
  const isOver = peer.isClosed || isLate || (peer.goaway ?? 0) !== 0
  return { end: isOver ? (peer.goaway ?? -1) : null, resets, statuses, requests: [...requests] }
}

function hear(exchange: Exchange, heard: (request: Request) => void): void {
  const { head, authority, body } = exchange
  const chunks: Buffer[] = []
  body.on('data', (chunk: Buffer) => chunks.push(chunk))
  body.on('error', () => undefined)
  const ended = () => {
    const { method, target, rawHeaders } = head
    const bytes = Buffer.concat(chunks)
    const { trailers } = exchange
    const isOwn = exchange instanceof OwnHttp2Exchange
    const text = JSON.stringify([method, target, authority, rawHeaders, bytes.toString('base64'), trailers])
    heard({
      ...{ text, trailers },
      stream: isOwn ? exchange.stream : null,
      misread: isOwn ? misread(exchange, bytes) : null,
    })
    answerText(exchange, 'ok')
  }
  if (body.readableEnded) ended()
  else body.on('end', ended)
}
