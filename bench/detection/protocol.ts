import type { CorpusRequest, CorpusRow } from '../../src/classify/known/corpus.ts'
import type { HttpVersion } from '../../src/wire/request-head.ts'

/** What a detector says of a client. `bot`: an agent or a tool, without saying which. */
export type Said = 'agent' | 'automation' | 'bot' | 'human' | 'unknown'

export const SAID: readonly Said[] = ['agent', 'automation', 'bot', 'human', 'unknown']

export interface Answer {
  readonly verdict: Said
  /** The probability that the client is an agent; `null` if the detector gives none. */
  readonly probability: number | null
}

/** The body of `POST /v1/detect` for one recorded request. */
export function bodyOf({ print }: CorpusRow, { head, ja4h }: CorpusRequest): string {
  const headers: Record<string, string | string[]> = {}
  for (let i = 0; i < head.rawHeaders.length; i += 2) {
    const [name, value] = [head.rawHeaders[i]!, head.rawHeaders[i + 1]!]
    const before = headers[name]
    headers[name] = before === undefined ? value : [before, value].flat()
  }
  return JSON.stringify({
    method: head.method,
    path: head.target,
    http_version: HTTP_VERSIONS[head.version],
    headers,
    ja4: print.ja4,
    ja4h,
    http2: print.http2,
  })
}

/** Throws an Error that says what is wrong with the answer. */
export function readAnswer(text: string): Answer {
  const { verdict, confidence } = JSON.parse(text) as { verdict?: unknown; confidence?: unknown }
  if (!SAID.includes(verdict as Said))
    throw new Error(`verdict must be one of ${SAID.join(', ')}, not ${JSON.stringify(verdict)}`)
  if (confidence === undefined || confidence === null) return { verdict: verdict as Said, probability: null }
  if (typeof confidence === 'number' && confidence >= 0 && confidence <= 1)
    return { verdict: verdict as Said, probability: confidence }
  throw new Error(`confidence must be a number from 0 to 1, not ${JSON.stringify(confidence)}`)
}

const HTTP_VERSIONS: Readonly<Record<HttpVersion, string>> = { 10: '1.0', 11: '1.1', 20: '2', 30: '3' }
