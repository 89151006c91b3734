import type { App } from '../../apps/app.ts'
import { NO_PROOFS, type Proofs } from '../../classify/verdict/proof.ts'
import type { Action } from '../../policy/action.ts'
import type { ClientTimeout } from '../connection/client-timeouts.ts'
import type { ConnectionFailure, SecuredConnection } from '../connection/connection.ts'
import type { ProxyContext } from './context.ts'
import { type Judged, judge } from './judge.ts'
import type { Http1Handlers } from '../http/http1-connection.ts'
import { barred, blocked, redirected } from './refusals.ts'
import { RequestVisit } from './request-visit.ts'
import { UpgradeVisit } from './upgrade-visit.ts'
import type { UpstreamGroup } from '../upstream/upstream.ts'
import type { Visit } from './visit.ts'

export interface RequestHandlers {
  /** Called for each request. It must be answered or aborted exactly once. */
  request: Http1Handlers['request']
  upgrade: Http1Handlers['upgrade']
  /** Called at most once per connection, and once for each refused HTTP/2 request. */
  failed(failure: ConnectionFailure): void
  /**
   * A client was silent or did not read for too long. Called once for each connection, or HTTP/2 stream, that
   * this ends.
   */
  timedOut(timeout: ClientTimeout): void
  /** The handshake is complete. */
  secured(connection: SecuredConnection): void
}

export function createHandler(proxy: ProxyContext): RequestHandlers {
  return {
    request: (exchange) => handle(proxy, new RequestVisit(proxy, exchange)),
    upgrade: (upgrade) => handle(proxy, new UpgradeVisit(proxy, upgrade)),
    failed: (failure) => proxy.metrics.connectionFailed(failure),
    timedOut: (timeout) => proxy.metrics.clientTimedOut(timeout),
    secured: (connection) => proxy.metrics.connectionSecured(connection),
  }
}

/** The life of a request. All branches of the data plane are in this function, in `decide` and in `act`. */
function handle(proxy: ProxyContext, visit: Visit): void {
  const { prover, snapshot } = proxy
  if (prover === null) return decide(proxy, visit, NO_PROOFS, false)
  const { connection, head, authority } = visit
  const proofs = prover.prove(connection, head, authority, snapshot.policy.unknownSignerWaitMs)
  // A signed request waits until its signature is known to be unused, and for a key if the policy says so.
  if ('letGo' in proofs) visit.wait(proofs, (found, isGone) => decide(proxy, visit, found, isGone))
  else decide(proxy, visit, proofs, false)
}

/** `isGone`: the client disconnected during the wait. */
function decide(proxy: ProxyContext, visit: Visit, proofs: Proofs, isGone: boolean): void {
  const { metrics } = proxy
  const begunMs = metrics.detectionBegins()
  const judged = judge(proxy, visit.connection, visit.head, visit.authority, proofs)
  if (begunMs > 0) metrics.detectionDone(begunMs)
  // Above this line nothing awaits, logs, or touches a file or socket, except for signed requests. Few
  // requests read a clock.
  if (isGone) visit.left(judged)
  else if (judged.bar === null) act(proxy, visit, judged, judged.decision.action, 0)
  else visit.answer(judged, barred(judged, judged.bar))
}

/**
 * Total: a new Action does not compile until it is handled here. `retryMs`: the time until the limit allows a
 * request.
 */
function act(proxy: ProxyContext, visit: Visit, judged: Judged, action: Action, retryMs: number): void {
  switch (action.kind) {
    case 'pass':
      return visit.pass(judged, upstreamOf(proxy, judged.app), null)
    case 'tag':
      return visit.pass(judged, upstreamOf(proxy, judged.app), action.headers)
    case 'route':
      return visit.pass(
        judged,
        proxy.upstreams.get(action.upstream) ?? upstreamOf(proxy, judged.app),
        NO_HEADERS,
      )
    case 'rate_limit': {
      const { overLimitMs } = judged
      if (overLimitMs > 0) return act(proxy, visit, judged, action.then, overLimitMs)
      return visit.pass(judged, upstreamOf(proxy, judged.app), NO_HEADERS)
    }
    case 'tarpit': {
      const refusal = blocked(judged, action, retryMs)
      const letGo = proxy.tarpit.hold(action, () => visit.answer(judged, refusal))
      return letGo === null ? visit.answer(judged, refusal) : visit.hold(judged, letGo)
    }
    case 'block':
      return visit.answer(judged, blocked(judged, action, retryMs))
    case 'redirect':
      return visit.answer(judged, redirected(judged, action))
  }
}

/** The upstream of a request that no rule routes. */
function upstreamOf(proxy: ProxyContext, app: App): UpstreamGroup {
  if (app.upstream === null) return proxy.defaultUpstream
  const upstream = proxy.upstreams.get(app.upstream)
  if (upstream === undefined) proxy.lacksUpstream(app)
  return upstream ?? proxy.defaultUpstream
}

const NO_HEADERS: readonly string[] = []
