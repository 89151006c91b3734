import type { Asked } from './app.ts'
import type { CurlAnswer, CurlHead } from './curl.ts'

/** A request and its answer, in the form in which they are compared. */
export interface Talk {
  readonly request: Request | null
  readonly answer: Answer
}

type Headers = readonly (readonly [name: string, value: string])[]

export interface Request extends Omit<Asked, 'httpVersion' | 'rawHeaders'> {
  readonly headers: Headers
  readonly length: string | null
  readonly coding: string | null
}

export interface Answer extends Omit<CurlAnswer, 'heads'> {
  readonly heads: readonly Head[]
}

export interface Head extends Omit<CurlHead, 'version'> {
  readonly length: string | null
}

/** Without what we add, and with the framing, which is written anew, apart. */
export function requestOf(asked: Asked | undefined): Request | null {
  if (asked === undefined) return null
  const { method, url, body, rawHeaders, rawTrailers } = asked
  const headers = Array.from({ length: rawHeaders.length / 2 }, (_, i) => {
    return [rawHeaders[2 * i]!, rawHeaders[2 * i + 1]!] as const
  })
  return {
    ...{ method, url, body, rawTrailers },
    headers: headers.filter(([name]) => !OURS.test(name) && !FRAMING.test(name)),
    length: fieldOf(headers, 'content-length'),
    coding: fieldOf(headers, 'transfer-encoding'),
  }
}

export function answerOf({ heads, body, exitCode }: CurlAnswer): Answer {
  return { heads: heads.map(headOf), body, exitCode }
}

function headOf({ status, reason, headers }: CurlHead): Head {
  return {
    ...{ status, reason },
    headers: headers
      .filter(([name]) => !FRAMING.test(name))
      .map(([name, value]) => [name, IS_DATE.test(name) && value.includes(THIS_YEAR) ? 'now' : value]),
    length: fieldOf(headers, 'content-length'),
  }
}

/** Names in lower case, and no reason. */
export function asHttp2({ request, answer }: Talk): Talk {
  const lower = (headers: Headers): Headers => headers.map(([name, value]) => [name.toLowerCase(), value])
  return {
    request: request && { ...request, headers: lower(request.headers) },
    answer: {
      ...answer,
      heads: answer.heads.map((head) => ({ ...head, reason: '', headers: lower(head.headers) })),
    },
  }
}

function fieldOf(headers: Headers, name: string): string | null {
  return headers.find(([found]) => found.toLowerCase() === name)?.[1] ?? null
}

const OURS = /^(?:forwarded$|x-forwarded-|x-real-ip$|x-agent-|x-ja4|x-http2-)/i
const FRAMING = /^(?:connection|keep-alive|transfer-encoding|content-length|expect|upgrade)$/i
const IS_DATE = /^date$/i
const THIS_YEAR = String(new Date().getUTCFullYear())
