import { METHODS } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import type { Exchange } from '../../src/proxy/connection/exchange.ts'
import { fieldLines } from '../../src/proxy/connection/field-syntax.ts'
import { receiveHeaders, receiveTrailers } from '../../src/proxy/connection/request-headers.ts'
import { requestText, upstreamRequest } from '../../src/proxy/upstream/upstream-request.ts'
import { readRequests } from '../fuzz/llhttp.ts'
import { headerRules } from '../proxy/test-headers.ts'

/** What an app of HTTP/1.1 would misread of a request that has ended, or `null`: llhttp reads it, and another behind it. */
export function misread(exchange: Exchange, body: Buffer): string | null {
  const { authority, bodyLength, head } = exchange
  const { kept } = receiveHeaders(RULES, CONNECTION, head, authority, true)
  const request = upstreamRequest(exchange, { own: kept, introduction: null })
  if (request === null) return null // answered by us
  const trailers = bodyLength === null ? receiveTrailers(RULES, exchange.trailers, () => {}) : []
  const head1 = requestText(request, 'app.test', null)
  const bytes = Buffer.concat([Buffer.from(head1, 'latin1'), framed(body, bodyLength, trailers), NEXT])
  const { messages, isFault } = readRequests(bytes)
  if (isFault && messages.length === 0 && !METHODS.includes(head.method)) return null
  const [first, next] = messages
  const read = first && [first.method, first.target, first.body, first.trailers, first.isUpgrade]
  const meant = [head.method, request.target, body.toString('latin1'), trailers.map(trimmed), false]
  const fields = first?.rawHeaders.filter((_, i, all) => !FRAMING.test(all[i - (i % 2)]!))
  const own = authority === null ? ['Host', 'app.test', ...kept] : kept
  const isRight =
    !isFault && messages.length === 2 && next!.target === '/next' && isDeepStrictEqual(read, meant)
  return isRight && isDeepStrictEqual(fields, own.map(trimmed)) ? null : JSON.stringify([head1, messages])
}

function framed(body: Buffer, length: number | null, trailers: readonly string[]): Buffer {
  if (length !== null) return body
  const chunk = body.length === 0 ? [] : [`${body.length.toString(16)}\r\n`, body, '\r\n']
  const parts = [...chunk, `0\r\n${fieldLines(trailers)}\r\n`]
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)))
}

/** Blanks around a value mean nothing in HTTP/1.1. */
function trimmed(text: string): string {
  return text.replace(/^[\t ]+|[\t ]+$/g, '')
}

const RULES = headerRules({ oddNames: 'pass' })
const CONNECTION = { isTrusted: true, isJa4Hop: false }
const FRAMING = /^(?:content-length|transfer-encoding|expect)$/i
const NEXT = Buffer.from('GET /next HTTP/1.1\r\nHost: a\r\n\r\n')
