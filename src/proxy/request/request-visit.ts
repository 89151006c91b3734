import type { Proofs } from '../../classify/verdict/proof.ts'
import type { Connection } from '../connection/connection.ts'
import type { AppHeaders } from '../connection/app-headers.ts'
import type { ProxyContext } from './context.ts'
import type { Exchange } from '../connection/exchange.ts'
import { forward } from '../upstream/forward.ts'
import type { McpReading } from '../../wire/mcp/mcp-message.ts'
import { headersForApp } from './headers-for-app.ts'
import type { Judged } from './judge.ts'
import type { McpMessageReader } from './mcp/message-reader.ts'
import { type Paid, PaidExchange } from './pay/paid-exchange.ts'
import type { PendingProofs } from './prover.ts'
import type { ReceivedHead } from '../connection/received-head.ts'
import type { TermsPublisher } from './publish/terms-publisher.ts'
import { siteOf } from './publish/terms-site.ts'
import { unserved } from './refusals.ts'
import { type RefusalAnswer, refuse } from './refuse.ts'
import { suppliedHost } from './supplied-host.ts'
import type { Trace } from './tracer.ts'
import type { UpstreamGroup } from '../upstream/upstream.ts'
import type { Visit } from './visit.ts'

/** A request that the app or the proxy answers. */
export class RequestVisit implements Visit {
  readonly connection: Connection
  readonly head: ReceivedHead
  readonly authority: string
  readonly #proxy: ProxyContext
  #exchange: Exchange
  readonly #startedMs = performance.now()
  /** `null`: not traced, or not yet. */
  trace: Trace | null = null
  /** When the app was asked. Set only with an access log. */
  #askedMs = 0

  constructor(proxy: ProxyContext, exchange: Exchange) {
    this.#proxy = proxy
    this.#exchange = exchange
    this.connection = exchange.connection
    this.head = exchange.head
    this.authority = exchange.authority ?? suppliedHost(exchange.connection, proxy.defaultUpstream)
  }

  wait({ proofs, letGo }: PendingProofs, go: (proofs: Proofs, isGone: boolean) => void): void {
    let isGone = false
    this.#exchange.onGone = () => {
      isGone = true
      letGo()
    }
    void proofs.then((found) => {
      this.#exchange.onGone = null
      go(found, isGone)
    })
  }

  readMessage(reader: McpMessageReader, go: (reading: McpReading, isGone: boolean) => void): void {
    reader.read(this.#exchange, (reading, exchange, isGone) => {
      this.#exchange = exchange
      go(reading, isGone)
    })
  }

  left(judged: Judged): void {
    this.#done(judged, 0)
  }

  pass(
    judged: Judged,
    upstream: UpstreamGroup,
    ruleHeaders: readonly string[] | null,
    paid: Paid | null = null,
  ): void {
    this.trace = this.#proxy.tracer?.begin(this.connection, judged) ?? null
    const headers = headersForApp(this.#proxy, this, judged, upstream, ruleHeaders)
    if (this.#proxy.accessLog !== null) this.#askedMs = performance.now()
    const { publisher, trailersForApp } = this.#proxy
    const [exchange, sent] =
      publisher === null ? [this.#exchange, headers] : this.#published(publisher, judged, headers)
    const answered = paid === null ? exchange : new PaidExchange(exchange, paid)
    forward(answered, upstream, sent, trailersForApp, (outcome) => {
      paid?.done(0)
      const bytes = outcome.kind === 'answered' ? outcome.bytesReceived : null
      this.#done(judged, outcome.kind === 'client-gone' ? 0 : outcome.status, bytes)
      if (outcome.kind === 'failed') refuse(this.#exchange, unserved(judged, outcome))
    })
  }

  #published(
    publisher: TermsPublisher,
    { app, decision }: Judged,
    headers: AppHeaders,
  ): [Exchange, AppHeaders] {
    const site = siteOf(this.#proxy, this, app)
    return [publisher.exchangeFor(this.#exchange, decision, site), publisher.headersFor(headers, decision)]
  }

  answer(judged: Judged, refusal: RefusalAnswer): void {
    this.#exchange.onGone = null
    this.#done(judged, refusal.status)
    refuse(this.#exchange, refusal)
  }

  hold(judged: Judged, letGo: () => void): void {
    this.#exchange.onGone = () => {
      letGo()
      this.#done(judged, 0)
    }
  }

  #done(judged: Judged, status: number, bytes: number | null = null): void {
    const { metrics, clock, tracer, accessLog } = this.#proxy
    const trace = tracer === null ? null : (this.trace ?? tracer.begin(this.connection, judged))
    const traceId = trace?.isSampled ? trace.traceId : null
    const durationMs = performance.now() - this.#startedMs
    metrics.requestDone(judged, status, durationMs, clock.nowMs, traceId)
    accessLog?.add(this, { judged, status, bytes, durationMs, askedMs: this.#askedMs }, clock.nowMs)
    if (traceId !== null) tracer!.end(trace!, this, judged, status, this.#startedMs)
  }
}
