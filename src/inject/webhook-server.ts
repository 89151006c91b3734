import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { Fault } from '../shared/fault.ts'
import type { Log } from '../shared/log.ts'
import { parseReview, reviewAnswer } from './admission-review.ts'
import { inject, type Injection } from './injection.ts'
import type { InjectMetrics } from './inject-metrics.ts'
import { parsePod } from './pod.ts'
import type { SidecarSettings } from './sidecar.ts'

interface WebhookContext {
  readonly sidecar: SidecarSettings
  readonly version: string
  readonly metrics: InjectMetrics
  readonly log: Log
}

/** The server for the API server's requests. It has no certificate until `useCertificate` is called. */
export function createWebhookServer(context: WebhookContext): Server {
  const memory = { leftBytes: MEMORY_BYTES }
  const server = createServer({ ...LIMITS, ...TLS, ALPNProtocols: ['http/1.1'] }, (request, response) => {
    const startMs = performance.now()
    response.on('error', () => undefined) // the client has disconnected
    answer(context, request, memory)
      .catch((error: unknown) => failed(context, error))
      .then((answered) => {
        send(request, response, answered)
        if (answered.outcome !== null) context.metrics.reviewed(answered.outcome, performance.now() - startMs)
      })
  })
  server.timeout = LIMITS.requestTimeout * 2
  server.maxConnections = CONNECTIONS_MAX
  return server
}

/** Applies to new connections. */
export function useCertificate(server: Server, pair: { readonly chain: string; readonly key: string }): void {
  server.setSecureContext({ ...TLS, cert: pair.chain, key: pair.key })
}

type Outcome = 'patched' | 'unchanged' | 'refused' | 'malformed' | 'failed'

interface Answered {
  readonly status: number
  readonly type: 'application/json' | 'text/plain; charset=utf-8'
  readonly body: string
  /** `null`: the request was not a review. */
  readonly outcome: Outcome | null
  readonly headers?: Readonly<Record<string, string>>
}

async function answer(context: WebhookContext, request: IncomingMessage, memory: Memory): Promise<Answered> {
  const misplaced = refusalOfHead(request)
  if (misplaced !== null) return misplaced
  const body = await bodyOf(request, memory)
  if (body === 'too-long') return refusal(413, `a review may have ${BODY_BYTES_MAX} bytes`, CLOSE)
  if (body === 'no-memory') return refusal(503, 'too many reviews are on their way', CLOSE)
  try {
    return review(context, JSON.parse(UTF8.decode(body)))
  } catch (error) {
    if (error instanceof Fault) return { ...refusal(400, error.message), outcome: 'malformed' }
    // TypeError comes from the decoder, SyntaxError from the parser. The parser's message quotes the input.
    if (error instanceof SyntaxError || isUndecodable(error))
      return { ...refusal(400, 'the body is not valid JSON'), outcome: 'malformed' }
    throw error
  }
}

function refusalOfHead({ url, method, headers }: IncomingMessage): Answered | null {
  if (url!.split('?', 1)[0] !== PATH) return refusal(404, `there is nothing but ${PATH}`)
  if (method !== 'POST') return refusal(405, `${PATH} accepts only POST`, { Allow: 'POST' })
  const [type = ''] = (headers['content-type'] ?? '').split(';', 1)
  if (type.trim().toLowerCase() !== 'application/json' || headers['content-encoding'] !== undefined)
    return refusal(415, `${PATH} accepts only application/json`)
  return null
}

/**
 * Shared by all unfinished request bodies: any client that reaches this port can send bodies and never end
 * them.
 */
interface Memory {
  leftBytes: number
}

/**
 * Keeps reading an oversized body for a while: a client that is cut off while sending would not see the
 * response.
 */
async function bodyOf(request: IncomingMessage, memory: Memory): Promise<Buffer | 'too-long' | 'no-memory'> {
  const chunks: Buffer[] = []
  let length = 0
  let heldBytes = 0
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      length += chunk.length
      if (length > DISCARDED_BYTES_MAX) return 'too-long'
      if (length > BODY_BYTES_MAX) continue
      if (chunk.length > memory.leftBytes) return 'no-memory'
      memory.leftBytes -= chunk.length
      heldBytes += chunk.length
      chunks.push(chunk)
    }
    return length > BODY_BYTES_MAX ? 'too-long' : Buffer.concat(chunks)
  } finally {
    memory.leftBytes += heldBytes
  }
}

function review({ sidecar, version, log }: WebhookContext, value: unknown): Answered {
  const { uid, namespace, isDryRun, pod } = parseReview(value)
  let injection: Injection = NOTHING
  if (pod !== null) {
    const parsed = parsePod(pod.value, namespace)
    injection = inject(parsed, sidecar, version)
    const about = { namespace: shortened(namespace), pod: shortened(parsed.name), review: uid, isDryRun }
    if (injection.kind === 'patch') log.info('a Pod gets a sidecar', about)
    if (injection.kind === 'refused')
      log.info('a Pod is refused', { ...about, problems: injection.problems.map(shortened) })
  }
  const body = JSON.stringify(reviewAnswer(uid, injection))
  return { status: 200, type: 'application/json', body, outcome: OUTCOMES[injection.kind] }
}

/** A bug in Gatehouse. The webhook's `failurePolicy` decides about the Pod. */
function failed({ log }: WebhookContext, error: unknown): Answered {
  if ((error as NodeJS.ErrnoException).code === 'ECONNRESET')
    return refusal(400, 'the body ended too early', CLOSE)
  log.error('a review failed', { error: error instanceof Error ? error : new Error(String(error)) })
  return { ...refusal(500, 'the review failed'), outcome: 'failed' }
}

function refusal(status: number, what: string, headers: Answered['headers'] = {}): Answered {
  return { status, type: 'text/plain; charset=utf-8', body: `${what}\n`, outcome: null, headers }
}

function send(request: IncomingMessage, response: ServerResponse, answered: Answered): void {
  if (response.destroyed) return
  const { status, type, body, headers } = answered
  // Close, so that the rest of an unread body need not be awaited.
  const ending = request.complete ? {} : CLOSE
  response.writeHead(status, {
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...headers,
    ...ending,
  })
  response.end(body)
}

function isUndecodable(error: unknown): boolean {
  return error instanceof TypeError && 'code' in error && error.code === 'ERR_ENCODING_INVALID_ENCODED_DATA'
}

function shortened(text: string): string {
  return text.slice(0, LOGGED_LENGTH_MAX)
}

const PATH = '/mutate'
/** The API server stores objects up to 1.5 MiB, and a review may contain one twice. */
const BODY_BYTES_MAX = 3 * 1024 * 1024
/** Most reviews have some ten KiB. */
const MEMORY_BYTES = 64 * 1024 * 1024
const DISCARDED_BYTES_MAX = 10 * BODY_BYTES_MAX
const TLS = { minVersion: 'TLSv1.2' } as const
const LIMITS = {
  // The API server waits at most 30 s, usually less.
  requestTimeout: 10_000,
  headersTimeout: 5_000,
  handshakeTimeout: 5_000,
  keepAliveTimeout: 120_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16_384,
}
/** API servers are few and reuse their connections. */
const CONNECTIONS_MAX = 500
const CLOSE = { Connection: 'close' }
const LOGGED_LENGTH_MAX = 253
const UTF8 = new TextDecoder('utf-8', { fatal: true })
const NOTHING = { kind: 'nothing', warnings: [] } as const
const OUTCOMES = { patch: 'patched', nothing: 'unchanged', refused: 'refused' } as const
