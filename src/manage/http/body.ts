import { isUtf8 } from 'node:buffer'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { bodyParser } from '@koa/bodyparser'
import type Koa from 'koa'
import { invalid, Refusal } from './refusal.ts'
import { readBytes } from './body-bytes.ts'
import { jsonProblem } from './json-problem.ts'
import { shapeProblem } from '../../wire/json-shape.ts'

/** Throws a Refusal where these are not the bytes of the body that was signed. */
export type CheckBody = (bytes: Uint8Array) => void

/** The JSON in a request, at once where it is there. Throws a Refusal, or rejects with it, at what is none, or too long. */
export function readBody(ctx: Koa.ParameterizedContext, bytesMax: number): unknown {
  if (!hasBody(ctx)) throw invalid([{ pointer: '', detail: 'is missing' }])
  if (!isPlainJson(ctx) && !ctx.request.is('json', '+json'))
    throw new Refusal('unsupported_media_type', 'the body has to be JSON (Content-Type: application/json)', {
      headers: { Accept: 'application/json' },
    })
  const bytes = readWhole(ctx, bytesMax)
  return bytes instanceof Promise ? bytes.then(jsonIn) : jsonIn(bytes)
}

/** The same, to say more about a request that is refused anyway; `null` where the body is missing or invalid. */
export async function bodyIfAny(ctx: Koa.ParameterizedContext, bytesMax: number): Promise<unknown> {
  try {
    return await readBody(ctx, bytesMax)
  } catch (error) {
    if (error instanceof Refusal) return null
    throw error
  }
}

/** For what takes none: some clients send an empty one, and some an empty object. */
export function readNoBody(ctx: Koa.ParameterizedContext): Promise<void> | void {
  if (hasBody(ctx)) return readEmptyBody(ctx)
}

async function readEmptyBody(ctx: Koa.ParameterizedContext): Promise<void> {
  const text = ctx.get('Content-Type') === '' ? null : textIn(await readWhole(ctx, EMPTY_BYTES_MAX)).trim()
  if (text === null || !EMPTY.has(text))
    throw invalid([{ pointer: '', detail: 'is not taken here: this has no body' }])
}

function readWhole(ctx: Koa.ParameterizedContext, bytesMax: number): Promise<Buffer> | Buffer {
  const { headers } = ctx.req
  const charset = isPlainJson(ctx) ? '' : ctx.request.charset.toLowerCase()
  if (charset !== '' && charset !== 'utf-8' && charset !== 'utf8')
    throw new Refusal('unsupported_media_type', `the body has to be UTF-8, not ${charset}`)
  const coding = headers['content-encoding']?.toLowerCase() ?? ''
  if (!CODINGS.has(coding))
    throw new Refusal('unsupported_media_type', 'the body may be compressed with gzip, deflate or br', {
      headers: { 'Accept-Encoding': 'gzip, deflate, br' },
    })
  if (Number(headers['content-length']) > bytesMax) throw tooLarge(bytesMax)
  if (headers.expect) {
    ctx.res.writeContinue()
    ctx.remove('Connection')
  }
  // Most are not compressed: those cost a fraction.
  const isPlain = coding === '' || coding === 'identity'
  return isPlain ? readChecked(ctx, bytesMax) : unpacked(ctx, coding, bytesMax)
}

function textIn(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw invalid([{ pointer: '', detail: 'is not UTF-8' }])
  return bytes.toString('utf8', hasMark(bytes) ? MARK_BYTES : 0)
}

async function unpacked(ctx: Koa.ParameterizedContext, coding: string, bytesMax: number): Promise<Buffer> {
  // What was signed is what was sent.
  if (checkOf(ctx) !== undefined) return unpackedBytes(await readChecked(ctx, bytesMax), coding, bytesMax)
  const parser = PARSERS.get(bytesMax) ?? parserFor(bytesMax)
  PARSERS.set(bytesMax, parser)
  await parser(ctx as Koa.Context, async () => undefined)
  const { body } = ctx.request
  if (typeof body !== 'string') throw new Refusal('invalid_request', 'the body was cut off')
  return Buffer.from(body, 'latin1')
}

async function unpackedBytes(sent: Buffer, coding: string, bytesMax: number): Promise<Buffer> {
  try {
    return await UNPACK[coding as keyof typeof UNPACK](sent, { maxOutputLength: bytesMax })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(bytesMax)
    throw new Refusal('invalid_request', 'the body is damaged, or was cut off')
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

/** Of the order of bytes, which UTF-8 does not need and some write. */
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

/** Reads, with limits, what may be compressed: as bytes, which it has no other word for than Latin-1. */
function parserFor(bytesMax: number): Koa.Middleware {
  return bodyParser({
    enableTypes: ['text'],
    extendTypes: { text: ['*/*'] },
    textLimit: String(bytesMax),
    encoding: 'binary',
    parsedMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    onError: (error, ctx) => {
      // Whoever sends more than is taken reads the answer all the same, until the time of the request is up; what unpacks
      // it takes no more, and would hold the rest, and with it the next request on the connection.
      ctx.req.unpipe().resume()
      const { status } = error as Error & { status?: number }
      if (status === 413) throw tooLarge(bytesMax)
      throw new Refusal('invalid_request', 'the body is damaged, or was cut off')
    },
  })
}

function tooLarge(bytesMax: number): Refusal {
  return new Refusal('too_large', `the body may have ${bytesMax} bytes`)
}

/** As most say it. */
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
