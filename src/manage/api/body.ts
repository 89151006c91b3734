import { bodyParser } from '@koa/bodyparser'
import type Koa from 'koa'
import { Refusal } from '../refusal.ts'

/** The JSON in a request. Throws a Refusal at what is none, or too long. */
export async function readBody(ctx: Koa.ParameterizedContext, bytesMax: number): Promise<unknown> {
  if (!ctx.request.is('json', '+json')) {
    if (!hasBody(ctx))
      throw new Refusal('invalid_request', 'the body is missing', {
        errors: [{ pointer: '', detail: 'is missing' }],
      })
    throw new Refusal('unsupported_media_type', 'the body has to be JSON (Content-Type: application/json)')
  }
  const parser = PARSERS.get(bytesMax) ?? parserFor(bytesMax)
  PARSERS.set(bytesMax, parser)
  await parser(ctx as Koa.Context, async () => undefined)
  return ctx.request.body
}

function parserFor(bytesMax: number): Koa.Middleware {
  return bodyParser({
    enableTypes: ['json'],
    jsonLimit: bytesMax,
    detectJSON: () => true, // it has been looked at
    // What kind of JSON it has to be, schemas say.
    jsonStrict: false,
    onError: (error) => {
      const { status, message } = error as Error & { status?: number }
      if (status === 413) throw new Refusal('too_large', `the body may have ${bytesMax} bytes`)
      if (status === 415) throw new Refusal('unsupported_media_type', message)
      throw new Refusal('invalid_request', `the body is no JSON: ${message}`, {
        errors: [{ pointer: '', detail: message }],
      })
    },
  })
}

function hasBody({ req }: Koa.ParameterizedContext): boolean {
  return req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0
}

const PARSERS = new Map<number, Koa.Middleware>()
