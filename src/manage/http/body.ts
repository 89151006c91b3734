import { isUtf8 } from 'node:buffer'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { bodyParser } from '@koa/bodyparser'
import type Koa from 'koa'
import { invalid, Refusal } from './refusal.ts'
import { readBytes } from './body-bytes.ts'
import { jsonProblem } from './json-problem.ts'
import { shapeProblem } from '../../wire/json-shape.ts'

/** Throws a Refusal if these bytes are not the body that was signed. */
export type CheckBody = (bytes: Uint8Array) => void

/**
 * Reads the JSON body of a request. Returns it at once if it has arrived. Throws a Refusal, or rejects with
 * it, if the body is not JSON or longer than `bytesMax`.
 */
export function readBody(ctx: Koa.ParameterizedContext, bytesMax: number): unknown {
  if (!hasBody(ctx)) throw invalid([{ pointer: '', detail: 'is missing' }])
  if (!isPlainJson(ctx) && !ctx.request.is('json', '+json'))
    throw new Refusal('unsupported_media_type', 'the body must be JSON (Content-Type: application/json)', {
      headers: { Accept: 'application/json' },
    })
  const bytes = readWhole(ctx, bytesMax)
  return bytes instanceof Promise ? bytes.then(jsonIn) : jsonIn(bytes)
}

/** Like `readBody`, but returns `null` if the body is missing or invalid. It adds detail to a refusal. */
export async function bodyIfAny(ctx: Koa.ParameterizedContext, bytesMax: number): Promise<unknown> {
  try {
    return await readBody(ctx, bytesMax)
  } catch (error) {
    if (error instanceof Refusal) return null
    throw error
  }
}

/**
 * For operations without a body. Some clients send an empty body and some an empty object: both are accepted.
 */
export function readNoBody(ctx: Koa.ParameterizedContext): Promise<void> | void {
  if (hasBody(ctx)) return readEmptyBody(ctx)
}

async function readEmptyBody(ctx: Koa.ParameterizedContext): Promise<void> {
  const text = ctx.get('Content-Type') === '' ? null : textIn(await readWhole(ctx, EMPTY_BYTES_MAX)).trim()
  if (text === null || !EMPTY.has(text))
    throw invalid([{ pointer: '', detail: 'must be empty: this operation takes no body' }])
}

function readWhole(ctx: Koa.ParameterizedContext, bytesMax: number): Promise<Buffer> | Buffer {
  const { headers } = ctx.req
  const charset = isPlainJson(ctx) ? '' : ctx.request.charset.toLowerCase()
  if (charset !== '' && charset !== 'utf-8' && charset !== 'utf8')
    throw new Refusal('unsupported_media_type', `the body must be UTF-8, not ${charset}`)
  const coding = headers['content-encoding']?.toLowerCase() ?? ''
  if (!CODINGS.has(coding))
    throw new Refusal('unsupported_media_type', 'unsupported Content-Encoding: use gzip, deflate or br', {
      headers: { 'Accept-Encoding': 'gzip, deflate, br' },
    })
  if (Number(headers['content-length']) > bytesMax) throw tooLarge(bytesMax)
  if (headers.expect) {
    ctx.res.writeContinue()
    ctx.remove('Connection')
  }
  // Most bodies are not compressed. Reading them directly costs a fraction of what the parser costs.
  const isPlain = coding === '' || coding === 'identity'
  return isPlain ? readChecked(ctx, bytesMax) : unpacked(ctx, coding, bytesMax)
}

function textIn(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw invalid([{ pointer: '', detail: 'is not UTF-8' }])
  return bytes.toString('utf8', hasMark(bytes) ? MARK_BYTES : 0)
}

async function unpacked(ctx: Koa.ParameterizedContext, coding: string, bytesMax: number): Promise<Buffer> {
  // The signature covers the bytes as sent, so check it before decompressing.
  if (checkOf(ctx) !== undefined) return unpackedBytes(await readChecked(ctx, bytesMax), coding, bytesMax)
  const parser = PARSERS.get(bytesMax) ?? parserFor(bytesMax)
  PARSERS.set(bytesMax, parser)
  await parser(ctx as Koa.Context, async () => undefined)
  const { body } = ctx.request
  if (typeof body !== 'string') throw new Refusal('invalid_request', 'the body is incomplete')
  return Buffer.from(body, 'latin1')
}

async function unpackedBytes(sent: Buffer, coding: string, bytesMax: number): Promise<Buffer> {
  try {
    return await UNPACK[coding as keyof typeof UNPACK](sent, { maxOutputLength: bytesMax })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(bytesMax)
    throw new Refusal('invalid_request', 'the body is damaged or incomplete')
  }
}

function readChecked(ctx: Koa.ParameterizedContext, bytesMax: number): Promise<Buffer> | Buffer {
  const bytes = readBytes(ctx.req, bytesMax)
  const check = checkOf(ctx)
  if (check === undefined) return bytes
  const checked = (all: Buffer) => {
    check(all)
    return all
  }
  return bytes instanceof Promise ? bytes.then(checked) : checked(bytes)
}

function checkOf({ state }: Koa.ParameterizedContext): CheckBody | undefined {
  return (state as { readonly checkBody?: CheckBody }).checkBody
}

/** A UTF-8 byte order mark. UTF-8 does not need one, but some clients write it. */
function hasMark(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

function jsonIn(bytes: Buffer): unknown {
  const text = textIn(bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalid([{ pointer: '', detail: jsonProblem(text) }])
  }
  const problem = shapeProblem(value)
  if (problem !== null) throw invalid([problem])
  return value
}

/**
 * A size-limited parser for compressed bodies. It returns the bytes as a Latin-1 string, its only form for
 * bytes.
 */
function parserFor(bytesMax: number): Koa.Middleware {
  return bodyParser({
    enableTypes: ['text'],
    extendTypes: { text: ['*/*'] },
    textLimit: String(bytesMax),
    encoding: 'binary',
    parsedMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    onError: (error, ctx) => {
      // Drain the rest, so that a client that is still sending can read the answer before the request
      // timeout. The decompressor stops reading; still piped to it, the rest would block the next request on
      // the connection.
      ctx.req.unpipe().resume()
      const { status } = error as Error & { status?: number }
      if (status === 413) throw tooLarge(bytesMax)
      throw new Refusal('invalid_request', 'the body is damaged or incomplete')
    },
  })
}

function tooLarge(bytesMax: number): Refusal {
  return new Refusal('too_large', `the body is larger than ${bytesMax} bytes`)
}

/** The most common spelling, compared without parsing. */
function isPlainJson({ req }: Koa.ParameterizedContext): boolean {
  return req.headers['content-type'] === 'application/json'
}

export function hasBody({ req }: Koa.ParameterizedContext): boolean {
  return req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0
}

const PARSERS = new Map<number, Koa.Middleware>()
const UNPACK = { gzip: promisify(gunzip), deflate: promisify(inflate), br: promisify(brotliDecompress) }
const CODINGS = new Set(['', 'identity', 'gzip', 'deflate', 'br'])
const EMPTY = new Set(['', '{}', 'null'])
const EMPTY_BYTES_MAX = 64
const MARK_BYTES = 3
