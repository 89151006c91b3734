import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import http2, { type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import { steady } from '../steady.ts'
import type { CaseApp, Got } from './case-app.ts'
import { bytesOf, type ServerCase } from './server-cases.ts'

/** Everything by which two servers could be told apart, except time. */
export interface Outcome {
  /** Interim heads, the final one and trailers. */
  readonly heads: readonly (readonly string[])[]
  readonly body: string
  /** With which its stream was closed. */
  readonly code: number
  /** What the app got. */
  readonly got: Partial<Got> | null
}

/** A client of node:http2, with one connection for most of its requests. */
export class Line {
  readonly #url: string
  readonly #app: CaseApp
  #session: Promise<ClientHttp2Session> | null = null

  constructor(url: string, app: CaseApp) {
    this.#url = url
    this.#app = app
  }

  /** Plays the cases at the same time. */
  play(plans: readonly ServerCase[]): Promise<Outcome[]> {
    return Promise.all(
      plans.map(async (plan) => {
        if (!plan.hasWrongLength) return playCase(await this.#open(), this.#app, plan)
        // node:http2 may end the connection.
        const session = await this.#dial()
        const outcome = await playCase(session, this.#app, plan)
        session.destroy()
        return outcome
      }),
    )
  }

  async end(): Promise<void> {
    const session = await this.#session
    session?.close()
  }

  #open(): Promise<ClientHttp2Session> {
    this.#session ??= this.#dial()
    return this.#session
  }

  async #dial(): Promise<ClientHttp2Session> {
    const session = http2.connect(this.#url, {
      ...{ rejectUnauthorized: false, servername: 'a.example.test' },
      ...{ maxSessionMemory: 100, strictSingleValueFields: false, maxSendHeaderBlockLength: 200_000 },
    })
    session.on('error', () => undefined)
    await once(session, 'connect')
    return session
  }
}

async function playCase(session: ClientHttp2Session, app: CaseApp, plan: ServerCase): Promise<Outcome> {
  const { fields, body, trailers, reset } = plan.request
  const hearing = app.expect(plan)
  const stream = session.request(fields as never, {
    endStream: body === null,
    waitForTrailers: trailers.length > 0,
  })
  const closed = new Promise<void>((resolve) => stream.once('close', resolve))
  const leave = () => stream.close(constants.NGHTTP2_CANCEL)
  if (reset === 'answered') stream.on('response', leave)
  if (reset === 'within') stream.on('data', leave)
  stream.on('wantTrailers', () => stream.sendTrailers(objectOf(trailers)))
  const heard = listen(stream)
  if (body !== null) {
    // Node's client (24.21) may never end a stream that closes before an empty write has been reported.
    for (const piece of bytesOf(body)) if (piece.length > 0) stream.write(piece)
    stream.end()
  }
  if (reset === 'at once') leave()
  if (reset === 'asked') {
    await Promise.race([hearing.asked, closed])
    leave()
  }
  const late = new AbortController()
  const isLate = sleep(LATE_MS, true, late).catch(() => false)
  if (await Promise.race([closed, isLate])) {
    const bytes = heard.chunks.reduce((sum, { length }) => sum + length, 0)
    const state = JSON.stringify([heard.heads.length, bytes, hearing.got, session.state, stream.state])
    assert.fail(`no end: ${state} ${JSON.stringify(plan)}`)
  }
  late.abort()
  // A request that was taken back at once may never be begun.
  if (reset === 'at once') return { heads: [], body: '', code: 0, got: null }
  if (hearing.got !== null) await hearing.over
  app.forget(plan)
  return outcomeOf(plan, heard, stream.rstCode!, hearing.got)
}

interface Heard {
  readonly heads: string[][]
  readonly chunks: Buffer[]
}

function listen(stream: ClientHttp2Stream): Heard {
  const heard: Heard = { heads: [], chunks: [] }
  const keep = (_headers: unknown, _flags: number, raw: unknown) => void heard.heads.push(raw as string[])
  stream.on('headers', keep).on('response', keep).on('trailers', keep)
  stream.on('data', (bytes: Buffer) => heard.chunks.push(bytes))
  stream.on('error', () => undefined)
  return heard
}

/** Without what is a matter of time, where the client leaves or the answer breaks off. */
function outcomeOf(plan: ServerCase, { heads, chunks }: Heard, code: number, got: Got | null): Outcome {
  const { request, answer } = plan
  const hasLeft = request.reset !== null
  const shown = hasLeft ? heads.filter(([, status]) => !status?.startsWith('1')) : heads
  return {
    heads: shown.map((head) => head.map(steadyField)),
    body: hasLeft || answer.end === 'broken' ? '' : shortOf(Buffer.concat(chunks)),
    code,
    got: got === null ? null : steadyGot(got, hasLeft || answer.isEarly),
  }
}

function steadyGot({ line, rawHeaders, body, rawTrailers, hasLeft }: Got, isPart: boolean): Partial<Got> {
  const shown = { line, rawHeaders: rawHeaders.map(steadyField), hasLeft }
  return isPart ? { ...shown, body: null } : { ...shown, body, rawTrailers }
}

function steadyField(text: string, index: number, head: readonly string[]): string {
  const name = index % 2 === 1 ? head[index - 1]!.toLowerCase() : ''
  return UNSTEADY.has(name) ? name : steady(text)
}

/** Short answers are the gateway's own, which name their request. */
function shortOf(bytes: Buffer): string {
  return bytes.length < 2000
    ? steady(bytes.toString('latin1'))
    : `${bytes.length} ${createHash('sha256').update(bytes).digest('hex')}`
}

function objectOf(fields: readonly string[]): Record<string, string[]> {
  const found: Record<string, string[]> = {}
  for (let i = 0; i < fields.length; i += 2)
    found[fields[i]!] = [...(found[fields[i]!] ?? []), fields[i + 1]!]
  return found
}

const UNSTEADY: ReadonlySet<string> = new Set(['date', 'x-forwarded-port', 'x-agent-decision-id'])
const LATE_MS = 60_000
