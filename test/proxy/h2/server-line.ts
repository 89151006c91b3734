import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import http2, { type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import { steady } from '../steady.ts'
import type { CaseApp, Got } from './case-app.ts'
import type { FrameLog } from './frame-log.ts'
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

/** An outcome, and what was said on its stream. */
export interface Played extends Outcome {
  frames(): string
}

/** A client of node:http2, with one connection for most of its requests. */
export class Line {
  readonly app: CaseApp
  readonly log: FrameLog
  readonly #url: string
  #session: Promise<ClientHttp2Session> | null = null

  constructor(log: FrameLog, isTls: boolean, app: CaseApp) {
    this.#url = `${isTls ? 'https' : 'http'}://127.0.0.1:${log.port}`
    this.log = log
    this.app = app
  }

  /** Plays the cases at the same time. */
  play(plans: readonly ServerCase[]): Promise<Played[]> {
    return Promise.all(
      plans.map(async (plan) => {
        if (!plan.hasWrongLength) return playCase(await this.#open(), this, plan)
        // node:http2 may end the connection.
        const session = await this.#dial()
        const outcome = await playCase(session, this, plan)
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

async function playCase(session: ClientHttp2Session, { app, log }: Line, plan: ServerCase): Promise<Played> {
  const { fields, body, trailers, reset } = plan.request
  const hearing = app.expect(plan)
  const stream = session.request(fields as never, {
    endStream: body === null,
    waitForTrailers: trailers.length > 0,
  })
  const port = session.socket?.localPort ?? 0
  const frames = () => log.textOf(port, stream.id!)
  const closed = new Promise<void>((resolve) => stream.once('close', resolve))
  const leave = () => stream.close(constants.NGHTTP2_CANCEL)
  if (reset === 'answered') stream.on('response', leave)
  if (reset === 'within') stream.on('data', leave)
  stream.on('wantTrailers', () => stream.sendTrailers(objectOf(trailers)))
  const heard = listen(stream)
  if (body !== null) {
    const pieces = bytesOf(body).filter(({ length }) => length > 0)
    for (const piece of pieces) stream.write(piece)
    // Node's client (24.21) may write empty frames until no memory is left, in one of 5,000 cases, unless an empty
    // write stands between a body of several frames and its end.
    if (pieces.reduce((sum, { length }) => sum + length, 0) <= FRAME_BYTES) stream.end()
    else stream.write('', () => stream.end())
  }
  if (reset === 'at once') leave()
  if (reset === 'asked') {
    await Promise.race([hearing.asked, closed])
    leave()
  }
  if (await isOpenAfter(STALL_MS, closed)) {
    // Node's client (24.21) may leave bytes unread that it has received, until it writes again.
    if (log.isAhead(port, stream.id!, stream.state.localWindowSize ?? 0)) {
      log.stalls.push(frames())
      session.ping(() => undefined)
    }
    if (await isOpenAfter(LATE_MS, closed)) {
      const bytes = heard.chunks.reduce((sum, { length }) => sum + length, 0)
      const { state } = session
      const inside = JSON.stringify([heard.heads.length, bytes, hearing.got, state, stream.state])
      assert.fail(`no end: ${frames()}\n${inside} ${JSON.stringify(plan)}`)
    }
  }
  // A request that was taken back at once may never be begun.
  if (reset === 'at once') return { heads: [], body: '', code: 0, got: null, frames }
  if (hearing.got !== null) await hearing.over
  app.forget(plan)
  return { ...outcomeOf(plan, heard, stream.rstCode!, hearing.got), frames }
}

async function isOpenAfter(ms: number, closed: Promise<void>): Promise<boolean> {
  const given = new AbortController()
  const isLate = sleep(ms, true, given).catch(() => false)
  const isOpen = (await Promise.race([closed, isLate])) === true
  given.abort()
  return isOpen
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

/** Without what is a matter of time, where the client leaves, the answer breaks off or the stream is reset. */
function outcomeOf(plan: ServerCase, { heads, chunks }: Heard, code: number, got: Got | null): Outcome {
  const { request, answer } = plan
  const hasLeft = request.reset !== null
  const shown = hasLeft ? heads.filter(([, status]) => !status?.startsWith('1')) : heads
  return {
    heads: shown.map((head) => head.map(steadyField)),
    body: hasLeft || answer.end === 'broken' || code !== 0 ? '' : shortOf(Buffer.concat(chunks)),
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
/** What node:http2 sends as one frame. */
const FRAME_BYTES = 16_384
/** A stream that takes so long is looked at. */
const STALL_MS = 5_000
const LATE_MS = 60_000
