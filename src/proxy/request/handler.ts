import type { App } from '../../apps/app.ts'
import { NO_PROOFS, type Proofs } from '../../classify/verdict/proof.ts'
import type { Action, BlockAction, TarpitAction } from '../../policy/action.ts'
import type { ClientTimeout } from '../connection/client-timeouts.ts'
import type { ConnectionFailure, SecuredConnection } from '../connection/connection.ts'
import type { Policy } from '../../policy/policy.ts'
import { mayAskForCall } from '../../policy/mcp-asking.ts'
import type { McpReading } from '../../wire/mcp/mcp-message.ts'
import type { ProxyContext } from './context.ts'
import { type Judged, judge } from './judge.ts'
import type { Http1Handlers } from '../http/http1-connection.ts'
import type { TermsPublisher } from './publish/terms-publisher.ts'
import { siteOf } from './publish/terms-site.ts'
import { askingToSign, barred, blocked, published, redirected } from './refusals.ts'
import type { RefusalAnswer } from './refuse.ts'
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
  const { prover } = proxy
  if (prover === null) return proven(proxy, visit, NO_PROOFS, false)
  const { connection, head, authority } = visit
  const { unknownSignerWaitMs } = policyFor(proxy, authority)
  const proofs = prover.prove(connection, head, authority, unknownSignerWaitMs)
  // A signed request waits until its signature is known to be unused, and for a key if the policy says so.
  if ('letGo' in proofs) visit.wait(proofs, (found, isGone) => proven(proxy, visit, found, isGone))
  else proven(proxy, visit, proofs, false)
}

/** `isGone`: the client disconnected during the wait. */
function proven(proxy: ProxyContext, visit: Visit, proofs: Proofs, isGone: boolean): void {
  if (isGone || !asksForCall(proxy, visit)) return decide(proxy, visit, proofs, isGone, null)
  visit.readMessage(proxy.messages, (reading, hasLeft) => decide(proxy, visit, proofs, hasLeft, reading))
}

/** Whether a rule asks for the call of an MCP server in the body. Few policies have such rules. */
function asksForCall(proxy: ProxyContext, { head, authority }: Visit): boolean {
  const policy = policyFor(proxy, authority)
  if (!policy.asked.mcp) return false
  const target = { method: head.method, host: authority, path: head.target }
  return mayAskForCall(policy, target, proxy.clock.nowMs, proxy.scratch.policy)
}

/** Most installations have no policies of apps, and then no app is looked up. */
function policyFor({ snapshot, apps }: ProxyContext, authority: string): Policy {
  const { policy, appPolicies } = snapshot
  return appPolicies.size === 0 ? policy : (appPolicies.get(apps.appOf(authority).id) ?? policy)
}

/** `reading`: of its body, as far as a rule asks for it. */
function decide(
  proxy: ProxyContext,
  visit: Visit,
  proofs: Proofs,
  isGone: boolean,
  reading: McpReading | null,
): void {
  const { metrics } = proxy
  const begunMs = metrics.detectionBegins()
  const judged = judge(proxy, visit, proofs, reading)
  if (begunMs > 0) metrics.detectionDone(begunMs)
  // Above this line nothing awaits, logs, or touches a file or socket, except for signed requests and calls of MCP
  // servers. Few requests read a clock.
  if (isGone) visit.left(judged)
  else if (judged.bar !== null) visit.answer(judged, barred(judged, judged.bar))
  else if (proxy.publisher === null) act(proxy, visit, judged, judged.decision.action, 0)
  else publish(proxy, proxy.publisher, visit, judged)
}

/** The proxy answers with the licence itself; what else it publishes goes with answers of the app. */
function publish(proxy: ProxyContext, publisher: TermsPublisher, visit: Visit, judged: Judged): void {
  const license = publisher.license(judged.decision, siteOf(proxy, visit, judged.app))
  if (license === null) act(proxy, visit, judged, judged.decision.action, 0)
  else visit.answer(judged, published(judged, license))
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
      const refusal = refusalFor(proxy, judged, action, retryMs)
      const letGo = proxy.tarpit.hold(action, () => visit.answer(judged, refusal))
      return letGo === null ? visit.answer(judged, refusal) : visit.hold(judged, letGo)
    }
    case 'block':
      return visit.answer(judged, refusalFor(proxy, judged, action, retryMs))
    case 'charge':
      return proxy.toll.stop(visit, judged, action, {
        letIn: (paid) => visit.pass(judged, upstreamOf(proxy, judged.app), NO_HEADERS, paid),
        answer: (refusal) => visit.answer(judged, refusal),
        hold: (letGo) => visit.hold(judged, letGo),
      })
    case 'redirect':
      return visit.answer(judged, redirected(judged, action))
  }
}

function refusalFor(
  { prover }: ProxyContext,
  judged: Judged,
  action: BlockAction | TarpitAction,
  retryMs: number,
): RefusalAnswer {
  const refusal = blocked(judged, action, retryMs)
  const mayProve = prover?.isSignatureChecked === true && judged.verdict.proof === null
  return mayProve && judged.verdict.kind !== 'human' ? askingToSign(refusal) : refusal
}

/** The upstream of a request that no rule routes. */
function upstreamOf(proxy: ProxyContext, app: App): UpstreamGroup {
  if (app.upstream === null) return proxy.defaultUpstream
  const upstream = proxy.upstreams.get(app.upstream)
  if (upstream === undefined) proxy.lacksUpstream(app)
  return upstream ?? proxy.defaultUpstream
}

const NO_HEADERS: readonly string[] = []
