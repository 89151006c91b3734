import type { App } from '../../apps/app.ts'
import { classify } from '../../classify/verdict/classify.ts'
import { Conduct } from '../../classify/verdict/conduct.ts'
import { NO_PROOFS, type Proofs, type SignatureFinding } from '../../classify/verdict/proof.ts'
import { UNKNOWN, type Verdict } from '../../classify/verdict/verdict.ts'
import { ja4h } from '../../fingerprint/ja4plus/ja4h.ts'
import type { ConnectionPrint, Print } from '../../fingerprint/print.ts'
import { type Sighting, SIGHTING_TEXT_MAX, type SightingId } from '../../plane/sighting.ts'
import type { Snapshot } from '../../plane/snapshot.ts'
import { type Decision, decide } from '../../policy/decide.ts'
import type { Facts } from '../../policy/facts.ts'
import { mcpFacts } from '../../policy/mcp-conditions.ts'
import type { McpReading } from '../../wire/mcp/mcp-message.ts'
import { shortText, shortUnicode } from '../../wire/own-text.ts'
import type { RequestHead } from '../../wire/request-head.ts'
import { BARRED, type Bar, barOf } from './bar.ts'
import { type Connection, NOTHING_KNOWN } from '../connection/connection.ts'
import type { ProxyContext } from './context.ts'
import type { DecisionId } from '../connection/decision-id.ts'
import { clientAddress, hopJa4 } from '../connection/peer-address.ts'
import { clientNetwork } from '../../wire/ip-address.ts'
import { overLimit } from './over-limit.ts'
import type { ReceivedHead } from '../connection/received-head.ts'
import { type ReceivedHeaders, receiveHeaders } from '../connection/request-headers.ts'

/** Everything known and decided about a request before it is acted on. */
export interface Judged {
  readonly id: DecisionId
  readonly received: ReceivedHeaders
  /** The client's address, as far as the hops in front of the proxy are trusted. */
  readonly address: string
  readonly app: App
  readonly print: Print
  readonly verdict: Verdict
  /** Set if the settings decided instead of the policy. */
  readonly bar: Bar | null
  readonly decision: Decision
  /** The time until the rule allows such a request again. 0: within the limit, or no limit. */
  readonly overLimitMs: number
  /** What its body says to an MCP server. `null`: no rule asks for it. */
  readonly mcp: McpReading | null
}

/** What is judged: a Visit. */
interface JudgedVisit {
  readonly connection: Connection
  readonly head: ReceivedHead
  readonly authority: string
}

/** Judges requests and upgrade requests alike. */
export function judge(
  proxy: ProxyContext,
  { connection, head, authority }: JudgedVisit,
  proofs: Proofs = NO_PROOFS,
  mcp: McpReading | null = null,
): Judged {
  const { snapshot } = proxy // read once, so that a request sees a single Snapshot
  const app = proxy.apps.appOf(authority)
  const { headerRules, metrics } = proxy
  const policy = snapshot.appPolicies.get(app.id) ?? snapshot.policy
  const received = receiveHeaders(headerRules, connection, head, authority, policy.asked.method)
  const address = clientAddress(connection, received.hop, proxy.trusted)
  const print: Print = {
    connection: connectionPrint(proxy, connection, head),
    ja4h: proxy.ja4plus ? ja4h(head, proxy.scratch.names) : null,
  }
  const arrived: Arrived = { head, authority, received, address, print }
  const verdict = verdictOn(proxy, snapshot, connection, arrived, proofs)
  const facts: Facts = {
    method: head.method,
    host: authority,
    path: head.target,
    address,
    rawHeaders: head.rawHeaders,
    print,
    verdict,
    forged: received.forged,
    campaign: proxy.scratch.classification.campaign,
    mcp: mcp?.kind === 'message' ? mcpFacts(mcp) : null,
    signer: proofs.signature?.kind === 'proven' ? proofs.signature.about : null,
  }
  const bar =
    barOf(proxy, connection, authority, print, received.oddNames) ??
    (mcp?.kind === 'refused' ? 'mcp-message' : null)
  const { clock, scratch } = proxy
  const decision =
    bar === null
      ? (proxy.publisher?.decisionFor(head) ?? decide(policy, facts, clock.nowMs, scratch.policy))
      : BARRED[bar]
  const overLimitMs = overLimit(proxy, address, app, {
    print,
    verdict,
    decision,
    tool: facts.mcp?.tool ?? null,
  })
  const id = proxy.ids.next()
  const judged: Judged = { id, received, address, app, print, verdict, bar, decision, overLimitMs, mcp }
  if (received.forged.length > 0) metrics.forgedHeaders(received.forged.length)
  if (received.oddNames > 0) metrics.oddHeaderNames(received.oddNames)
  proxy.recorder.record(sighting(proxy, judged, arrived, proofs.signature, snapshot.number))
  return judged
}

/** A request as it arrived, before it is judged. */
interface Arrived {
  readonly head: RequestHead
  readonly authority: string
  readonly received: ReceivedHeaders
  /** The client's address, as in Judged. */
  readonly address: string
  readonly print: Print
}

function verdictOn(
  { traffic, clock: { nowMs }, scratch }: ProxyContext,
  { knowledge, campaigns }: Snapshot,
  connection: Connection,
  { head, print, received, address }: Arrived,
  proofs: Proofs,
): Verdict {
  if (knowledge === null) {
    scratch.classification.forgetSigns()
    return UNKNOWN
  }
  const { hop } = received
  const forged = received.forged.length
  const memory = scratch.classification
  if (!connection.isTrusted && !connection.isJa4Hop) {
    connection.conduct ??= new Conduct(traffic, clientNetwork(address), address)
    const { conduct } = connection
    return classify(knowledge, { print, head, conduct, forged, nowMs, campaigns }, proofs, memory)
  }
  // A hop's connection carries requests of many clients. So the conduct belongs to the client address, if the
  // hop reports one, not to the connection.
  const conduct =
    address === connection.address ? null : new Conduct(traffic, clientNetwork(address), address)
  const relayed = hop.forwardedProto === 'https' ? RELAYED_SECURE : RELAYED
  const shown = print.connection.ja4Source === 'hop' ? print : relayed
  return classify(knowledge, { print: shown, head, conduct, forged, nowMs, campaigns }, proofs, memory)
}

/** A listed hop saw the client's own hello. What this proxy saw and answered is the hop's hello. */
function connectionPrint(proxy: ProxyContext, connection: Connection, head: RequestHead): ConnectionPrint {
  if (!connection.isJa4Hop) return connection.print
  const ja4 = hopJa4(connection, head.rawHeaders, proxy.headerRules.ja4Header)
  if (ja4 === null) return connection.print
  return { ...NOTHING_KNOWN, ja4, noHello: null, ja4Source: 'hop' }
}

function sighting(
  proxy: ProxyContext,
  judged: Judged,
  { head, authority }: Arrived,
  signature: SignatureFinding | null,
  snapshot: number,
): Sighting {
  const { print, verdict, decision, received } = judged
  const unproven = signature !== null && 'why' in signature ? signature : null
  const { ja4, stable, ja4s, ja4x, http2, noHello, ja4Source } = print.connection
  const { signs, campaign } = proxy.scratch.classification
  const called = judged.mcp?.kind === 'message' && judged.mcp.method !== null ? judged.mcp : null
  return {
    id: judged.id as string as SightingId,
    seenAtMs: proxy.clock.nowMs,
    proxy: proxy.name,
    address: judged.address,
    method: head.method,
    host: shortText(authority, SIGHTING_TEXT_MAX),
    app: judged.app.id,
    path: pathOf(head.target),
    userAgent: userAgentOf(received.kept),
    ja4,
    ja4Source,
    noHello,
    stable,
    ja4s,
    ja4h: print.ja4h,
    ja4x,
    http2,
    verdict: verdict.kind,
    agent: verdict.agent?.id ?? null,
    category: verdict.agent?.category ?? null,
    purposes: verdict.agent?.purposes ?? NONE,
    software: verdict.software?.id ?? null,
    confidence: verdict.confidence,
    nameConfidence: verdict.nameConfidence,
    verified: verdict.proof?.method ?? null,
    signer: verdict.proof?.method === 'web-bot-auth' ? verdict.proof.agent : null,
    key: verdict.proof?.key ?? null,
    signatureFault: unproven?.why ?? null,
    allegedSigner: unproven?.agentId ?? null,
    evidence: verdict.evidence.map(({ kind }) => kind),
    rule: decision.wouldHave?.rule ?? decision.rule,
    layer: (decision.wouldHave ?? decision).layer,
    action: decision.wouldHave?.action.kind ?? decision.action.kind,
    dryRun: decision.wouldHave !== null,
    done: decision.action.kind,
    limited: judged.overLimitMs > 0,
    forged: received.forged,
    snapshot,
    requestKind: signs.kind,
    program: signs.program,
    headerOrder: signs.order,
    target: signs.target,
    campaign,
    visitor: null,
    sampled: null,
    mcpMethod: called === null ? null : shortUnicode(called.method!, SIGHTING_TEXT_MAX),
    mcpTool: called === null || called.tool === null ? null : shortUnicode(called.tool, SIGHTING_TEXT_MAX),
  }
}

function pathOf(target: string): string {
  const query = target.indexOf('?')
  return shortText(target, SIGHTING_TEXT_MAX, query === -1 ? target.length : query)
}

function userAgentOf(headers: readonly string[]): string | null {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.length === USER_AGENT.length && headers[i]!.toLowerCase() === USER_AGENT)
      return shortText(headers[i + 1]!, SIGHTING_TEXT_MAX)
  }
  return null
}

const USER_AGENT = 'user-agent'
const NONE: readonly string[] = []

/** For a client behind a hop that does not report its fingerprint. */
const RELAYED: Print = {
  connection: { ...NOTHING_KNOWN, ja4Source: 'hop' },
  ja4h: null,
}
const RELAYED_SECURE: Print = { connection: { ...RELAYED.connection, noHello: null }, ja4h: null }
