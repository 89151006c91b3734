import { randomBytes } from 'node:crypto'
import type { App } from '../../apps/app.ts'
import type { Verdict } from '../../classify/verdict/verdict.ts'
import type { Print } from '../../fingerprint/print.ts'
import type { ClientPrivacy } from '../../plane/privacy/client-privacy.ts'
import type { Decision } from '../../policy/decide.ts'
import { shortText } from '../../wire/own-text.ts'
import type { RequestHead } from '../../wire/request-head.ts'
import type { Connection } from '../connection/connection.ts'
import type { DecisionId } from '../connection/decision-id.ts'
import type { ReceivedHeaders } from '../connection/request-headers.ts'
import type { Attribute, TraceSpan } from './span-exporter.ts'
import { putTraceContext, type TraceContext, traceContextIn } from './trace-context.ts'

/** The trace of one request. */
export interface Trace {
  readonly traceId: string
  readonly isSampled: boolean
  /** The span of a trusted hop that continues here. `null`: the trace begins here. */
  readonly parentId: string | null
  /** The trace context that an untrusted client sent. */
  readonly link: TraceContext | null
  readonly spanId: string
  /** The span of the app's part, which is sent to the app. */
  readonly appSpanId: string
  /** When the app was asked. `null`: it was not. */
  askedMs: number | null
}

export interface TracedRequest {
  readonly connection: Connection
  readonly head: RequestHead
  readonly authority: string | null
}

/** The decision on the request. */
export interface TracedDecision {
  readonly id: DecisionId
  readonly received: ReceivedHeaders
  readonly address: string
  readonly app: App
  readonly print: Print
  readonly verdict: Verdict
  readonly decision: Decision
}

/** What a span shows of the client. */
type ShownClient = Pick<ClientPrivacy, 'address' | 'path' | 'userAgent'>

/**
 * Begins and ends traces. The trace context of an untrusted client neither continues a trace nor causes a
 * recording.
 */
export class Tracer {
  readonly #share: number
  readonly #exporter: { add(span: TraceSpan): void }
  readonly #privacy: ShownClient
  readonly #spanPrefix = randomBytes(4).toString('hex')
  #spans = 0

  /** `share`: the share of requests to record if no trusted hop has decided it. */
  constructor(share: number, exporter: { add(span: TraceSpan): void }, privacy: ShownClient) {
    this.#share = share
    this.#privacy = privacy
    this.#exporter = exporter
  }

  /** Begins a trace even if it is not recorded, because the app's spans may refer to it. */
  begin(connection: Connection, { id, received }: TracedDecision): Trace {
    const said = traceContextIn(received.kept)
    const parent = connection.isTrusted ? said : null
    return {
      traceId: parent?.traceId ?? id.replaceAll('-', ''),
      isSampled: parent?.isSampled ?? Math.random() < this.#share,
      parentId: parent?.spanId ?? null,
      link: parent === null ? said : null,
      spanId: this.#nextSpan(),
      appSpanId: this.#nextSpan(),
      askedMs: null,
    }
  }

  /** Adds the trace context to the headers for the app. */
  tell(trace: Trace, headers: string[]): void {
    const { traceId, appSpanId, isSampled } = trace
    trace.askedMs = performance.now()
    putTraceContext(headers, { traceId, spanId: appSpanId, isSampled }, trace.parentId !== null)
  }

  /** `status` 0: there was no answer. */
  end(trace: Trace, request: TracedRequest, judged: TracedDecision, status: number, startedMs: number): void {
    if (!trace.isSampled) return
    const { traceId, spanId, parentId, appSpanId, askedMs, link } = trace
    const { method } = request.head
    const endTimeUnixNano = nanosOf(performance.now())
    const outcome = { status: { code: status === 0 || status >= 500 ? 2 : 0 }, endTimeUnixNano } as const
    this.#exporter.add({
      traceId,
      spanId,
      parentSpanId: parentId ?? '',
      name: method,
      kind: 2,
      startTimeUnixNano: nanosOf(startedMs),
      attributes: [...ofRequest(request, judged, status, this.#privacy), ...ofDecision(judged)],
      links: link === null ? NO_LINKS : [{ traceId: link.traceId, spanId: link.spanId }],
      ...outcome,
    })
    if (askedMs === null) return
    this.#exporter.add({
      traceId,
      spanId: appSpanId,
      parentSpanId: spanId,
      name: `${method} upstream`,
      kind: 3,
      startTimeUnixNano: nanosOf(askedMs),
      attributes: [text('http.request.method', method), ...ofStatus(status)],
      links: NO_LINKS,
      ...outcome,
    })
  }

  #nextSpan(): string {
    this.#spans = (this.#spans + 1) >>> 0 || 1
    return this.#spanPrefix + this.#spans.toString(16).padStart(8, '0')
  }
}

/** Attributes by the semantic conventions for HTTP. The query is omitted. */
function ofRequest(
  { connection, head, authority }: TracedRequest,
  { address, received }: TracedDecision,
  status: number,
  privacy: ShownClient,
): readonly Attribute[] {
  const { method, target, version } = head
  const end = target.indexOf('?')
  const path = privacy.path(shortText(target, TEXT_LENGTH_MAX, end === -1 ? target.length : end))
  const client = privacy.address(address)
  const at = received.kept.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'user-agent')
  const userAgent = privacy.userAgent(at === -1 ? null : shortText(received.kept[at + 1]!, TEXT_LENGTH_MAX))
  return [
    text('http.request.method', method),
    ...(path === '' ? [] : [text('url.path', path)]),
    text('url.scheme', connection.isTls ? 'https' : 'http'),
    ...(authority === null ? [] : [text('server.address', shortText(authority, TEXT_LENGTH_MAX))]),
    text('network.protocol.version', version === '20' ? '2' : `${version[0]}.${version[1]}`),
    ...(client === '' ? [] : [text('client.address', client)]),
    ...(userAgent === null ? [] : [text('user_agent.original', userAgent)]),
    ...ofStatus(status),
  ]
}

function ofDecision({ id, app, verdict, decision, print }: TracedDecision): readonly Attribute[] {
  const { agent, software, proof, conflicts, evidence } = verdict
  const { ja4 } = print.connection
  return [
    text('gatehouse.decision_id', id),
    text('gatehouse.app', app.id),
    text('gatehouse.verdict', verdict.kind),
    { key: 'gatehouse.confidence', value: { doubleValue: verdict.confidence } },
    ...(agent === null
      ? []
      : [text('gatehouse.agent', agent.id), text('gatehouse.category', agent.category)]),
    ...(agent === null || agent.purposes.length === 0 ? [] : [texts('gatehouse.purpose', agent.purposes)]),
    ...(software === null
      ? []
      : [
          text('gatehouse.software', software.id),
          { key: 'gatehouse.name_confidence', value: { doubleValue: verdict.nameConfidence } },
        ]),
    ...(proof === null ? [] : [text('gatehouse.verified', proof.method)]),
    ...(conflicts.length === 0 ? [] : [texts('gatehouse.conflicts', conflicts)]),
    texts(
      'gatehouse.evidence',
      evidence.map(({ kind }) => kind),
    ),
    text('gatehouse.rule', decision.rule),
    ...(decision.layer === null ? [] : [text('gatehouse.layer', decision.layer)]),
    text('gatehouse.action', decision.action.kind),
    ...(ja4 === null ? [] : [text('gatehouse.ja4', ja4)]),
    ...(print.ja4h === null ? [] : [text('gatehouse.ja4h', print.ja4h)]),
  ]
}

function ofStatus(status: number): readonly Attribute[] {
  return status === 0 ? [] : [{ key: 'http.response.status_code', value: { intValue: String(status) } }]
}

/** Text from a client may not be valid Unicode. */
function text(key: string, value: string): Attribute {
  return { key, value: { stringValue: value.slice(0, TEXT_LENGTH_MAX).toWellFormed() } }
}

function texts(key: string, values: readonly string[]): Attribute {
  return { key, value: { arrayValue: { values: values.map((stringValue) => ({ stringValue })) } } }
}

/** With microsecond precision, the limit of a JavaScript number today. */
function nanosOf(atMs: number): string {
  return String(Math.round((performance.timeOrigin + atMs) * 1e6))
}

const NO_LINKS: TraceSpan['links'] = []
const TEXT_LENGTH_MAX = 1_024
