import type { Exchange } from '../connection/exchange.ts'
import { trailersToPass } from '../connection/field-syntax.ts'
import { OUTBOX } from '../http/outbox.ts'
import { PieceGatherer, SMALL_PIECE_BYTES_MAX } from '../http/piece-gatherer.ts'
import { RequestBody, type RequestBodyEvents } from './request-body.ts'
import type { AppHeaders } from '../connection/app-headers.ts'
import type { UpstreamGroup, UpstreamTarget } from './upstream.ts'
import { type UpstreamRequest, upstreamRequest } from './upstream-request.ts'
import type { Receiver, Retry, UpstreamFailure, UpstreamStream } from './upstream-stream.ts'

/** The outcome of a request. `target` is the URL of the target that answered or was asked last. */
export type ForwardOutcome =
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly target: string
      /** Bytes of body, to the upstream and from it. */
      readonly bytesSent: number
      readonly bytesReceived: number
    }
  /** The client disconnected before its answer was complete. */
  | { readonly kind: 'client-gone'; readonly target: string | null }
  /** No answer was sent: the caller must answer. */
  | {
      readonly kind: 'failed'
      readonly reason: UpstreamFailure
      readonly status: 400 | 502 | 503 | 504
      readonly target: string | null
    }
  /** The answer had begun and was aborted. */
  | {
      readonly kind: 'broken-off'
      readonly reason: UpstreamFailure
      readonly status: number
      readonly target: string
    }

/** Selects the request trailers that may go on to the app. */
export type TrailersForApp = (trailers: readonly string[]) => readonly string[]

/**
 * Forwards a request to an upstream and its answer to the client, both streaming. Calls `done` once, possibly
 * before it returns. After `failed` the caller must answer.
 */
export function forward(
  exchange: Exchange,
  group: UpstreamGroup,
  headers: AppHeaders,
  trailersForApp: TrailersForApp,
  done: (outcome: ForwardOutcome) => void,
): void {
  group.began()
  const request = upstreamRequest(exchange, headers)
  if (request !== null && !group.isClosed)
    return new Forwarding(exchange, group, request, trailersForApp, done).start()
  const reason = request === null ? 'bad-request' : 'closing'
  group.counters.failed[reason]++
  group.ended()
  done({ kind: 'failed', reason, status: FAILURE_STATUS[reason], target: null })
}

class Forwarding implements Receiver, RequestBodyEvents {
  request: UpstreamRequest
  #exchange: Exchange
  readonly #group: UpstreamGroup
  #done: (outcome: ForwardOutcome) => void
  readonly #trailersForApp: TrailersForApp
  #target: UpstreamTarget | null = null
  #stream: UpstreamStream | null = null
  #body: RequestBody | null = null
  readonly #startedMs = performance.now()
  #status = 0
  #bytesReceived = 0
  /** The event loop turn of the last small piece of the answer. */
  #turn = 0
  #gatherer: PieceGatherer | null = null
  /** Whether the client has no room for more of the answer. */
  #isFull = false
  #retriesLeft: number
  #resends = 0
  #tried: UpstreamTarget[] | null = null
  /** Whether it counts as one of the target's uploads. */
  #isUpload = false
  #isOver = false

  constructor(
    exchange: Exchange,
    group: UpstreamGroup,
    request: UpstreamRequest,
    trailersForApp: TrailersForApp,
    done: (outcome: ForwardOutcome) => void,
  ) {
    this.request = request
    this.#exchange = exchange
    this.#group = group
    this.#trailersForApp = trailersForApp
    this.#done = done
    this.#retriesLeft = group.retries
  }

  start(): void {
    this.#exchange.onGone = () => this.#clientGone()
    this.#ask(this.#group.pick(NONE_TRIED)!, false)
  }

  opened(stream: UpstreamStream): void {
    this.#stream = stream
    if (this.request.bodyLength === 0) return
    this.#body = new RequestBody(this.#exchange.body, this.request.bodyLength, stream, this)
  }

  writable(): void {
    this.#body?.resume()
  }

  get isBodyWhole(): boolean {
    return this.#isOver || this.#exchange.isBodyWhole
  }

  bodyEnded(): void {
    this.#uploaded()
    const { trailers } = this.#exchange
    this.#stream?.end(trailers.length === 0 ? trailers : this.#trailersForApp(trailers))
  }

  /** The client's body does not match its announced length, so the end of anything it sends is unreliable. */
  bodyBroke(): void {
    const exchange = this.#exchange
    this.#clientGone()
    exchange.abort()
  }

  informed(status: number, headers: readonly string[]): void {
    this.#exchange.inform(status, headers)
  }

  answered(
    status: number,
    reason: string | null,
    headers: readonly string[],
    bodyLength: number | null,
    neverIndexed?: readonly string[],
  ): void {
    this.#group.succeeded(this.#target!)
    this.#group.headDurations.observe(performance.now() - this.#startedMs)
    this.#status = status
    this.#exchange.answer(status, headers, bodyLength, reason, neverIndexed)
  }

  received(bytes: Uint8Array): boolean {
    this.#bytesReceived += bytes.length
    if (bytes.length > SMALL_PIECE_BYTES_MAX) {
      this.#gatherer?.flush()
      return this.#write(bytes)
    }
    const { turn } = OUTBOX
    if (turn !== this.#turn) {
      this.#turn = turn
      this.#gatherer?.flush()
      return this.#write(bytes)
    }
    this.#gatherer ??= new PieceGatherer((gathered) => this.#write(gathered))
    this.#gatherer.add(bytes)
    return !this.#isFull
  }

  completed(trailers: readonly string[]): void {
    this.#stream = null
    const isPassed = trailers.length > 0 && this.#exchange.acceptsTrailers
    const bytesSent = this.#body?.bytesSent ?? 0
    this.#gatherer?.flush()
    this.#detach()
    this.#exchange.end(isPassed ? trailersToPass(trailers) : NO_TRAILERS)
    this.#group.counters.answered++
    this.#finish({
      kind: 'answered',
      status: this.#status,
      target: this.#target!.address.url,
      bytesSent,
      bytesReceived: this.#bytesReceived,
    })
  }

  failed(failure: UpstreamFailure, retry: Retry): void {
    this.#stream = null
    this.#uploaded()
    this.#report(failure, retry)
    if (this.#retries(failure, retry)) return
    this.#gatherer?.flush()
    this.#detach()
    const target = this.#target!.address.url
    if (this.#status === 0) {
      this.#group.counters.failed[failure]++
      return this.#finish({ kind: 'failed', reason: failure, status: FAILURE_STATUS[failure], target })
    }
    this.#exchange.abort()
    this.#group.counters.brokenOff++
    this.#finish({ kind: 'broken-off', reason: failure, status: this.#status, target })
  }

  #write(bytes: Uint8Array): boolean {
    if (this.#exchange.write(bytes)) return true
    this.#isFull = true
    this.#exchange.onDrain ??= () => {
      this.#isFull = false
      this.#stream?.resume()
    }
    return false
  }

  #ask(target: UpstreamTarget, isFresh: boolean): void {
    this.#target = target
    this.#isUpload = this.request.bodyLength !== 0 && !this.#exchange.isBodyWhole
    const stream = this.#isUpload ? target.uploads.open(this, isFresh) : target.pool.open(this, isFresh)
    if (stream === null) this.failed('overloaded', 'never')
    else this.#stream ??= stream
  }

  #uploaded(): void {
    if (!this.#isUpload) return
    this.#isUpload = false
    this.#target!.uploads.over(this)
  }

  /** Returns whether the request is being sent again. */
  #retries(failure: UpstreamFailure, retry: Retry): boolean {
    // A body that has been read from is no longer complete.
    if (retry === 'never' || this.#body !== null || this.#isOver) return false
    if (retry === 'idempotent' && !this.request.isIdempotent) return false
    if (NOT_REACHED.has(failure)) return this.#asksAnother()
    if (failure !== 'reset' || this.#resends >= RESENDS_MAX[retry]) return false
    this.#resends++
    this.#group.counters.retries++
    this.#target!.health.tried()
    this.#ask(this.#target!, true)
    return true
  }

  #asksAnother(): boolean {
    if (this.#retriesLeft === 0) return false
    this.#retriesLeft--
    this.#tried = [...(this.#tried ?? NONE_TRIED), this.#target!]
    const next = this.#group.pick(this.#tried)
    if (next === null) return false
    this.#group.counters.retries++
    this.#ask(next, false)
    return true
  }

  /**
   * Reports the failure to the target's health. Failures of the proxy itself and of old connections do not
   * count.
   */
  #report(failure: UpstreamFailure, retry: Retry): void {
    if (this.#status !== 0) return
    const isOldAge = failure === 'reset' && retry !== 'never'
    if (isOldAge || OUR_OWN.has(failure)) this.#target!.health.abstained()
    else this.#group.failed(this.#target!, failure)
  }

  #clientGone(): void {
    if (this.#isOver) return
    this.#stream?.cancel()
    this.#detach()
    if (this.#status === 0) this.#target!.health.abstained()
    this.#group.counters.clientGone++
    this.#finish({ kind: 'client-gone', target: this.#target!.address.url })
  }

  #detach(): void {
    this.#isOver = true
    this.#gatherer?.drop()
    this.#stream = null
    this.#uploaded()
    this.#exchange.onGone = null
    this.#exchange.onDrain = null
    this.#body?.stop()
  }

  #finish(outcome: ForwardOutcome): void {
    this.#group.ended()
    const done = this.#done
    this.#letGo()
    done(outcome)
  }

  /**
   * An object that grew old while it waited keeps everything it refers to until V8 collects its old
   * generation. Without this, a third of the bytes of every request were copied there.
   */
  #letGo(): void {
    this.#exchange = LET_GO
    this.#done = LET_GO
    this.request = LET_GO
  }
}

/** Never read again. */
const LET_GO = null as never
const NONE_TRIED: readonly UpstreamTarget[] = []
const NO_TRAILERS: readonly string[] = []

/** All kept-alive connections may close at once, when their app restarts. */
const RESENDS_MAX = { safe: 3, idempotent: 1 } as const

/** The app cannot have seen the request, and another target may be reachable. */
export const NOT_REACHED: ReadonlySet<UpstreamFailure> = new Set([
  'refused',
  'unreachable',
  'tls',
  'connect-timeout',
])
/** Failures that no target is responsible for. */
export const OUR_OWN: ReadonlySet<UpstreamFailure> = new Set(['bad-request', 'overloaded', 'closing'])

export const FAILURE_STATUS: Readonly<Record<UpstreamFailure, 400 | 502 | 503 | 504>> = {
  refused: 502,
  unreachable: 502,
  tls: 502,
  'connect-timeout': 504,
  'head-timeout': 504,
  'idle-timeout': 504,
  reset: 502,
  'bad-response': 502,
  'bad-request': 400,
  overloaded: 503,
  closing: 503,
}
