import type { Proofs } from '../../classify/verdict/proof.ts'
import type { Connection } from '../connection/connection.ts'
import type { ProxyContext } from './context.ts'
import { FAILURE_STATUS, NOT_REACHED, OUR_OWN } from '../upstream/forward.ts'
import { listed } from '../connection/app-headers.ts'
import { type McpReading, NO_MCP_MESSAGE } from '../../wire/mcp/mcp-message.ts'
import type { McpMessageReader } from './mcp/message-reader.ts'
import { headersForApp } from './headers-for-app.ts'
import type { Upgrade } from '../connection/upgrade.ts'
import type { Judged } from './judge.ts'
import type { Paid } from './pay/paid-exchange.ts'
import type { PendingProofs } from './prover.ts'
import type { ReceivedHead } from '../connection/received-head.ts'
import { noWebSocket, unserved } from './refusals.ts'
import { type RefusalAnswer, refuseUpgrade } from './refuse.ts'
import { suppliedHost } from './supplied-host.ts'
import type { UpgradeOutcome } from './upgrade.ts'
import type { Trace } from './tracer.ts'
import type { UpstreamGroup, UpstreamTarget } from '../upstream/upstream.ts'
import type { UpstreamFailure } from '../upstream/upstream-stream.ts'
import type { Visit } from './visit.ts'

/** A WebSocket or another upgrade: judged like a request, then carried. */
export class UpgradeVisit implements Visit {
  readonly connection: Connection
  readonly head: ReceivedHead
  readonly authority: string
  readonly #proxy: ProxyContext
  readonly #upgrade: Upgrade
  readonly #startedMs = performance.now()
  /** `null`: not traced, or not yet. */
  trace: Trace | null = null
  #onGone: (() => void) | null = null
  #paid: Paid | null = null
  /** When the app was asked. Set only with an access log. */
  #askedMs = 0

  constructor(proxy: ProxyContext, upgrade: Upgrade) {
    this.#proxy = proxy
    this.#upgrade = upgrade
    this.connection = upgrade.connection
    this.head = upgrade.requestHead
    this.authority = upgrade.authority ?? suppliedHost(upgrade.connection, proxy.defaultUpstream)
  }

  wait({ proofs, letGo }: PendingProofs, go: (proofs: Proofs, isGone: boolean) => void): void {
    const { stream } = this.#upgrade
    let isGone = false
    const leave = () => {
      isGone = true
      stream.destroy()
      letGo()
    }
    stream.once('end', leave).once('close', leave)
    void proofs.then((found) => {
      stream.off('end', leave).off('close', leave)
      go(found, isGone)
    })
  }

  /** MCP does not use WebSockets. */
  readMessage(_: McpMessageReader, go: (reading: McpReading, isGone: boolean) => void): void {
    go(NO_MCP_MESSAGE, false)
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
    this.#paid = paid
    this.#release()
    this.trace = this.#proxy.tracer?.begin(this.connection, judged) ?? null
    const headers = listed(headersForApp(this.#proxy, this, judged, upstream, ruleHeaders))
    if (this.#proxy.accessLog !== null) this.#askedMs = performance.now()
    upstream.began()
    this.#ask({ judged, upstream, headers, tried: NONE_TRIED }, upstream.pick(NONE_TRIED)!)
  }

  answer(judged: Judged, refusal: RefusalAnswer): void {
    this.#release()
    this.#done(judged, refusal.status)
    refuseUpgrade(this.#upgrade, refusal)
  }

  hold(judged: Judged, letGo: () => void): void {
    const { stream } = this.#upgrade
    this.#onGone = () => {
      stream.off('end', this.#onGone!).off('close', this.#onGone!)
      stream.destroy()
      letGo()
      this.#done(judged, 0)
    }
    // A client that closes even only its own side before an answer no longer wants it.
    stream.once('end', this.#onGone).once('close', this.#onGone)
  }

  #release(): void {
    const { stream } = this.#upgrade
    if (this.#onGone !== null) stream.off('end', this.#onGone).off('close', this.#onGone)
    this.#onGone = null
  }

  #ask(passing: Passing, target: UpstreamTarget): void {
    const { upstream, headers, tried } = passing
    const { address } = target
    const now = { ...passing, tried: [...tried, target] }
    if (address.protocol !== 'h1') {
      upstream.abstained(target)
      return this.#askAnother(now, 'unreachable')
    }
    this.#proxy.upgrades.carry({
      upgrade: this.#upgrade,
      headers: upstream.settings.host === 'upstream' ? withHost(headers, address.authority) : headers,
      target: address,
      times: upstream.settings,
      idleMs: this.#proxy.upgradeIdleTimeoutMs,
      idled: () => this.#proxy.metrics.clientTimedOut('upgrade_idle_timeout'),
      done: (outcome) => this.#finished(now, target, outcome),
    })
  }

  #finished(passing: Passing, target: UpstreamTarget, outcome: UpgradeOutcome): void {
    const { judged, upstream } = passing
    switch (outcome.kind) {
      case 'ended':
      case 'declined':
        upstream.succeeded(target)
        upstream.counters.answered++
        upstream.ended()
        return this.#done(judged, outcome.kind === 'ended' ? 101 : outcome.status)
      case 'client-gone':
        upstream.abstained(target)
        upstream.counters.clientGone++
        upstream.ended()
        return this.#done(judged, 0)
      case 'failed':
        if (OUR_OWN.has(outcome.reason)) upstream.abstained(target)
        else upstream.failed(target, outcome.reason)
        return this.#askAnother(passing, outcome.reason)
      case 'unfit':
        // Not a failure of the target: any client can cause it.
        upstream.abstained(target)
        upstream.counters.failed['bad-response']++
        upstream.ended()
        return this.answer(judged, noWebSocket(judged))
    }
  }

  #askAnother(passing: Passing, reason: UpstreamFailure): void {
    const { upstream, tried } = passing
    const mayAsk = NOT_REACHED.has(reason) && tried.length <= upstream.retries
    const next = mayAsk ? upstream.pick(tried) : null
    if (next === null) return this.#unserved(passing, reason)
    upstream.counters.retries++
    this.#ask(passing, next)
  }

  #unserved({ judged, upstream }: Passing, reason: UpstreamFailure): void {
    upstream.counters.failed[reason]++
    upstream.ended()
    const status = FAILURE_STATUS[reason]
    this.answer(judged, unserved(judged, { kind: 'failed', reason, status, target: null }))
  }

  #done(judged: Judged, status: number): void {
    this.#paid?.done(status)
    const { metrics, clock, tracer, accessLog } = this.#proxy
    const trace = tracer === null ? null : (this.trace ?? tracer.begin(this.connection, judged))
    const traceId = trace?.isSampled ? trace.traceId : null
    const durationMs = performance.now() - this.#startedMs
    metrics.requestDone(judged, status, durationMs, clock.nowMs, traceId)
    accessLog?.add(this, { judged, status, bytes: null, durationMs, askedMs: this.#askedMs }, clock.nowMs)
    if (traceId !== null) tracer!.end(trace!, this, judged, status, this.#startedMs)
  }
}

function withHost(headers: readonly string[], host: string): string[] {
  return headers.map((text, i) => (i % 2 === 1 && headers[i - 1]!.toLowerCase() === 'host' ? host : text))
}

/** A request to an upstream, with the targets tried so far. */
interface Passing {
  readonly judged: Judged
  readonly upstream: UpstreamGroup
  readonly headers: readonly string[]
  readonly tried: readonly UpstreamTarget[]
}

const NONE_TRIED: readonly UpstreamTarget[] = []
