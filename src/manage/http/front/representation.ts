import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type Koa from 'koa'
import { LRUCache } from 'lru-cache'
import type { RequestContext } from '../router.ts'
import { hasTag, tagOf } from './entity-tags.ts'
import { putHead } from './head.ts'

/**
 * Turns an answer into the bytes to send. Compresses them if the client accepts that and it helps. The answer
 * to a read gets a strong entity tag, and no body if the client already has it (RFC 9110 §13). Streams are
 * left alone.
 */
export async function represent(ctx: RequestContext): Promise<void> {
  putHead(ctx)
  const { answer } = ctx.state
  if (answer !== undefined) {
    ctx.status = answer.status
    ctx.body = answer.body
  }
  if (ctx.state.isSecret === true) return
  const isRead = ctx.status === 200 && ctx.state.operation !== 'probe' && READS.has(ctx.method)
  const bytes = bytesOf(ctx.body)
  if (bytes === null) return
  const type = ctx.response.get('Content-Type') || JSON_TYPE
  ctx.body = bytes
  ctx.set('Content-Type', type)
  const isPublic = ctx.state.isPublic === true
  const coding = bytes.length < COMPRESSED_BYTES_MIN ? 'identity' : codingFor(ctx)
  if (isRead) {
    const given = ctx.response.get('ETag') || tagOf(bytes)
    const tag = coding === 'identity' ? given : `${given.slice(0, -1)}-${coding}"`
    ctx.set('ETag', tag)
    // The client may keep the answer, but has to revalidate it each time: permissions and contents change.
    ctx.set('Cache-Control', isPublic ? publicFor(ctx.state.freshSeconds) : 'private, no-cache')
    if (hasTag(ctx.get('If-None-Match'), tag)) {
      ctx.status = 304
      return
    }
  }
  if (coding === 'identity') return
  ctx.body = isPublic ? await keptCompressed(bytes, coding) : await CODINGS[coding](bytes)
  ctx.set('Content-Encoding', coding)
}

function publicFor(seconds: number | undefined): string {
  return seconds === undefined ? 'no-cache' : `public, max-age=${seconds}`
}

type Coding = keyof typeof CODINGS

/**
 * Sends an answer that is neither a read nor compressed. Head and text go out in one piece, without the
 * checks that Koa makes of a body. `false`: not sent, call `represent`.
 */
export function isSent(ctx: RequestContext): boolean {
  const { req, res, state } = ctx
  if (state.answer === undefined || state.answer.body === null || READS.has(req.method!)) return false
  const { status, body } = state.answer
  const text = JSON.stringify(body)
  const length = Buffer.byteLength(text)
  if (length >= COMPRESSED_BYTES_MIN) {
    if (req.headers['accept-encoding']) return false
    ctx.vary('Accept-Encoding')
  }
  state.head.push('Content-Type', JSON_TYPE, 'Content-Length', String(length))
  // ASCII text is the same in both encodings, and Latin-1 is copied without conversion.
  res.writeHead(status, state.head).end(text, length === text.length ? 'latin1' : 'utf8')
  return true
}

function isJson(body: unknown): body is object {
  return typeof body === 'object' && body !== null && !Buffer.isBuffer(body) && !('pipe' in body)
}

/** `null`: a stream, or no body. */
function bytesOf(body: unknown): Buffer | null {
  if (Buffer.isBuffer(body)) return body
  if (typeof body === 'string') return Buffer.from(body)
  return isJson(body) ? Buffer.from(JSON.stringify(body)) : null
}

/** The coding that the client prefers. Among equals, the one with the smaller output. */
function codingFor(ctx: Koa.ParameterizedContext): Coding | 'identity' {
  ctx.vary('Accept-Encoding')
  const weights = weightsIn(ctx.get('Accept-Encoding'))
  const weight = (coding: string) => weights.get(coding) ?? weights.get('*') ?? 0
  const best = (['br', 'gzip'] as const).reduce((one, other) => (weight(other) > weight(one) ? other : one))
  const isBetter = weight(best) >= (weights.get('identity') ?? 0)
  return weight(best) > 0 && isBetter ? best : 'identity'
}

/** Parses for example `gzip;q=0.5, br` (RFC 9110 §12.5.3). Items with an invalid weight are ignored. */
function weightsIn(header: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>()
  for (const item of header.toLowerCase().split(',', CODINGS_MAX)) {
    const [, coding, weight = '1'] = CODING.exec(item.trim()) ?? []
    if (coding !== undefined) weights.set(coding === 'x-gzip' ? 'gzip' : coding, Number(weight))
  }
  return weights
}

/** Caches compressed public documents, so that frequent requests for one do not use up the CPU. */
async function keptCompressed(bytes: Buffer, coding: Coding): Promise<Buffer> {
  const key = `${coding} ${createHash('sha256').update(bytes).digest('base64')}`
  const kept = KEPT.get(key) ?? (await CODINGS[coding](bytes))
  KEPT.set(key, kept)
  return kept
}

const CODINGS = {
  br: promisify((bytes: Buffer, done: (error: Error | null, result: Buffer) => void) =>
    brotliCompress(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }, done),
  ),
  gzip: promisify((bytes: Buffer, done: (error: Error | null, result: Buffer) => void) =>
    gzip(bytes, { level: 6 }, done),
  ),
}
const KEPT = new LRUCache<string, Buffer>({
  max: 50,
  maxSize: 4_194_304,
  sizeCalculation: ({ length }) => length,
})
const JSON_TYPE = 'application/json; charset=utf-8'
const READS = new Set(['GET', 'HEAD'])
const CODING = /^([a-z0-9*-]+)(?:\s*;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/
/** Only five codings exist. */
const CODINGS_MAX = 20
/** A shorter answer fits into one packet anyway. */
const COMPRESSED_BYTES_MIN = 1_024
