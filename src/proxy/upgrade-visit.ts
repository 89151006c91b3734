import type { RequestHead } from '../wire/request-head.ts'
import type { Connection } from './connection.ts'
import type { ProxyContext } from './context.ts'
import { headersForApp } from './headers-for-app.ts'
import type { Upgrade } from './http1-server.ts'
import type { Judged } from './judge.ts'
import { unserved } from './refusals.ts'
import { type Refusal, refusalText } from './refuse.ts'
import type { UpgradeOutcome } from './upgrade.ts'
import type { UpstreamGroup, UpstreamTarget } from './upstream.ts'
import type { Visit } from './visit.ts'

/** A WebSocket, or whatever else HTTP/1 can become: judged like a request, and then carried. */
export class UpgradeVisit implements Visit {
  readonly connection: Connection
  readonly head: RequestHead
  readonly authority: string | null
  readonly #proxy: ProxyContext
  readonly #upgrade: Upgrade
  readonly #startedMs = performance.now()
  #onClose: (() => void) | null = null

  constructor(proxy: ProxyContext, upgrade: Upgrade) {
    this.#proxy = proxy
    this.#upgrade = upgrade
    this.connection = upgrade.connection
    this.head = upgrade.requestHead
    this.authority = upgrade.authority
  }

  pass(judged: Judged, upstream: UpstreamGroup, ruleHeaders: readonly string[] | null): void {
    const target = upstream.pick(NONE_TRIED)
    if (target === null || target.address.protocol !== 'h1') return this.#unserved(judged)
    const { request, socket, head } = this.#upgrade
    upstream.began()
    this.#proxy.upgrades.carry({
      request,
      socket,
      head,
      headers: headersForApp(this.#proxy, this, judged, ruleHeaders),
      target: target.address,
      idleMs: this.#proxy.upgradeIdleTimeoutMs,
      done: (outcome) => {
        upstream.ended()
        this.#finished(judged, upstream, target, outcome)
      },
    })
  }

  answer(judged: Judged, refusal: Refusal): void {
    if (this.#onClose !== null) this.#upgrade.socket.off('close', this.#onClose)
    this.#done(judged, refusal.status)
    this.#upgrade.socket.end(refusalText(this.head.rawHeaders, refusal))
  }

  hold(judged: Judged, letGo: () => void): void {
    this.#onClose = () => {
      letGo()
      this.#done(judged, 0)
    }
    this.#upgrade.socket.once('close', this.#onClose)
  }

  #finished(judged: Judged, upstream: UpstreamGroup, target: UpstreamTarget, outcome: UpgradeOutcome): void {
    switch (outcome.kind) {
      case 'ended':
        upstream.succeeded(target)
        return this.#done(judged, 101)
      case 'declined':
        upstream.succeeded(target)
        return this.#done(judged, outcome.status)
      case 'client-gone':
        upstream.abstained(target)
        return this.#done(judged, 0)
      case 'failed':
        upstream.failed(target)
        return this.#unserved(judged)
    }
  }

  #unserved(judged: Judged): void {
    const failure = { kind: 'failed', reason: 'unreachable', status: 502, target: null } as const
    this.answer(judged, unserved(judged, failure))
  }

  #done({ verdict, decision }: Judged, status: number): void {
    this.#proxy.metrics.requestDone(
      verdict.kind,
      decision.action.kind,
      status,
      performance.now() - this.#startedMs,
    )
  }
}

const NONE_TRIED: readonly UpstreamTarget[] = []
