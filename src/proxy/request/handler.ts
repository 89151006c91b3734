import { NO_PROOFS, type Proofs } from '../../classify/verdict/proof.ts'
import type { Action } from '../../policy/action.ts'
import type { ClientTimeout } from '../connection/client-timeouts.ts'
import type { ConnectionFailure, SecuredConnection } from '../connection/connection.ts'
import type { ProxyContext } from './context.ts'
import { type Judged, judge } from './judge.ts'
import type { Http1Handlers } from '../http/http1-server.ts'
import { barred, blocked, redirected } from './refusals.ts'
import { RequestVisit } from './request-visit.ts'
import { UpgradeVisit } from './upgrade-visit.ts'
import type { Visit } from './visit.ts'

export interface RequestHandlers {
  /** A request has come: it is to be answered, or aborted, once. */
  request: Http1Handlers['request']
  upgrade: Http1Handlers['upgrade']
  /** At most once for a connection, and once for each request of HTTP/2 that is refused. */
  failed(failure: ConnectionFailure): void
  /** A client was silent, or did not read, for as long as is allowed. Once for each connection, or stream of HTTP/2, that it ends. */
  timedOut(timeout: ClientTimeout): void
  /** Its handshake is done. */
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

/** The life of a request. Every branch of the data plane is in this function, in `decide` and in `act`. */
function handle(proxy: ProxyContext, visit: Visit): void {
  const { prover, snapshot } = proxy
  if (prover === null) return decide(proxy, visit, NO_PROOFS, false)
  const { connection, head, authority } = visit
  const proofs = prover.prove(connection, head, authority, snapshot.policy.unknownSignerWaitMs)
  // Who has signed waits until it is known that nobody has used that before, and for a key where the policy says so.
  if ('letGo' in proofs) visit.wait(proofs, (found, isGone) => decide(proxy, visit, found, isGone))
  else decide(proxy, visit, proofs, false)
}

/** `isGone`: the client has left while it was waited for. */
function decide(proxy: ProxyContext, visit: Visit, proofs: Proofs, isGone: boolean): void {
  const { metrics } = proxy
  const begunMs = metrics.detectionBegins()
  const judged = judge(proxy, visit.connection, visit.head, visit.authority, proofs)
  if (begunMs > 0) metrics.detectionDone(begunMs)
  // Nothing above this line awaits, logs, or touches a file or a socket, but for who has signed; nor, but for a few, a clock.
  if (isGone) visit.left(judged)
  else if (judged.bar === null) act(proxy, visit, judged, judged.decision.action, 0)
  else visit.answer(judged, barred(judged, judged.bar))
}

/** Total: an Action that is added does not compile until it is handled here. `retryMs`: how far over a limit it is. */
function act(proxy: ProxyContext, visit: Visit, judged: Judged, action: Action, retryMs: number): void {
  switch (action.kind) {
    case 'pass':
      return visit.pass(judged, proxy.defaultUpstream, null)
    case 'tag':
      return visit.pass(judged, proxy.defaultUpstream, action.headers)
    case 'route':
      return visit.pass(judged, proxy.upstreams.get(action.upstream) ?? proxy.defaultUpstream, NO_HEADERS)
    case 'rate_limit': {
      const { overLimitMs } = judged
      if (overLimitMs > 0) return act(proxy, visit, judged, action.then, overLimitMs)
      return visit.pass(judged, proxy.defaultUpstream, NO_HEADERS)
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

const NO_HEADERS: readonly string[] = []
