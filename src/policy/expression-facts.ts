import { isOurHeader } from '../classify/verdict/our-headers.ts'
import { foldHeaderName } from '../wire/header-name.ts'
import type { Facts } from './facts.ts'

/** The facts that an expression can use, and their CEL types. */
export const FIELDS: Readonly<Record<string, Readonly<Record<string, string>> | 'bool'>> = {
  request: {
    method: 'string',
    host: 'string',
    path: 'string',
    query: 'string',
    headers: 'map<string, string>',
    mcp_method: 'string',
    mcp_tool: 'string',
    mcp_resource: 'string',
  },
  client: { address: 'string', campaign: 'string' },
  verdict: {
    kind: 'string',
    agent: 'string',
    category: 'string',
    purpose: 'list<string>',
    software: 'string',
    confidence: 'double',
    verified: 'bool',
    proof_method: 'string',
    signer: 'string',
    evidence: 'list<string>',
  },
  fingerprint: { ja4: 'string', ja4h: 'string', stable: 'string', http2: 'string' },
  forged: 'bool',
}

/** The values of those facts. */
export interface ExpressionFacts {
  readonly request: RequestView
  readonly client: ClientView
  readonly verdict: VerdictView
  readonly fingerprint: FingerprintView
  readonly forged: boolean
}

/** The parts of a request that the facts are computed from. It is reused for all requests. */
export interface FactSource {
  readonly facts: Facts
  readonly host: string | null
  readonly hostEnd: number
  readonly path: string
  readonly pathEnd: number
  readonly isPlain: boolean
  readonly plainPath: string | null
  headers: ReadonlyMap<string, string> | null
}

/** Reads whatever request the source holds. Values are computed only when an expression uses them. */
export function expressionFacts(source: FactSource): ExpressionFacts {
  return {
    request: new RequestView(source),
    client: new ClientView(source),
    verdict: new VerdictView(source),
    fingerprint: new FingerprintView(source),
    get forged() {
      return source.facts.forged.length > 0
    },
  }
}

class View {
  protected readonly source: FactSource

  constructor(source: FactSource) {
    this.source = source
  }
}

/** A missing value reads as an empty text. */
class RequestView extends View {
  get method(): string {
    return this.source.facts.method
  }

  get host(): string {
    return this.source.host === null ? '' : this.source.host.slice(0, this.source.hostEnd)
  }

  /** In the form that is being tried, as for the `path` condition. */
  get path(): string {
    const { isPlain, plainPath, path, pathEnd } = this.source
    return asText(isPlain && plainPath !== null ? plainPath : path.slice(0, pathEnd))
  }

  get query(): string {
    const { path } = this.source.facts
    const from = path.indexOf('?')
    if (from === -1) return ''
    const end = path.indexOf('#')
    if (end !== -1 && end < from) return ''
    return asText(path.slice(from + 1, end === -1 ? path.length : end))
  }

  get headers(): ReadonlyMap<string, string> {
    this.source.headers ??= headersOf(this.source.facts.rawHeaders)
    return this.source.headers
  }

  get mcp_method(): string {
    return asText(this.source.facts.mcp?.method ?? '')
  }

  get mcp_tool(): string {
    return asText(this.source.facts.mcp?.tool ?? '')
  }

  get mcp_resource(): string {
    return asText(this.source.facts.mcp?.resource ?? '')
  }
}

class ClientView extends View {
  get address(): string {
    return this.source.facts.address
  }

  get campaign(): string {
    return this.source.facts.campaign ?? ''
  }
}

class VerdictView extends View {
  get kind(): string {
    return this.source.facts.verdict.kind
  }

  get agent(): string {
    return this.source.facts.verdict.agent?.id ?? ''
  }

  get category(): string {
    return this.source.facts.verdict.agent?.category ?? ''
  }

  get purpose(): readonly string[] {
    return this.source.facts.verdict.agent?.purposes ?? NONE
  }

  get software(): string {
    return this.source.facts.verdict.software?.id ?? ''
  }

  get confidence(): number {
    return this.source.facts.verdict.confidence
  }

  get verified(): boolean {
    return this.source.facts.verdict.proof !== null
  }

  get proof_method(): string {
    return this.source.facts.verdict.proof?.method ?? ''
  }

  get signer(): string {
    const { proof } = this.source.facts.verdict
    return proof?.method === 'web-bot-auth' ? proof.agent : ''
  }

  get evidence(): readonly string[] {
    return this.source.facts.verdict.evidence.map(({ kind }) => kind)
  }
}

class FingerprintView extends View {
  get ja4(): string {
    return this.source.facts.print.connection.ja4 ?? ''
  }

  get ja4h(): string {
    return this.source.facts.print.ja4h ?? ''
  }

  get stable(): string {
    return this.source.facts.print.connection.stable ?? ''
  }

  get http2(): string {
    return this.source.facts.print.connection.http2 ?? ''
  }
}

/**
 * Headers by folded name. A header that is sent twice, in any spelling, is one list (RFC 9110 §5.2). Headers
 * that only the proxy may set are left out.
 */
function headersOf(rawHeaders: readonly string[]): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.startsWith(':')) continue
    const folded = foldHeaderName(name)
    if (isOurHeader(folded)) continue
    const value = asText(rawHeaders[i + 1]!)
    const before = headers.get(folded)
    headers.set(
      folded,
      before === undefined ? value : `${before}${folded === 'cookie' ? '; ' : ', '}${value}`,
    )
  }
  return headers
}

/** Decodes text that has one character per byte. */
function asText(bytes: string): string {
  for (let i = 0; i < bytes.length; i++) {
    // A loop, not a callback per character: a callback takes 100 times as long, and a client can send 64 KiB.
    if (bytes.charCodeAt(i) > 0x7f) return Buffer.from(bytes, 'latin1').toString()
  }
  return bytes
}

const NONE: readonly string[] = []
/** The class of each fact group, by name. */
export const VIEWS: Readonly<Record<string, new (source: FactSource) => object>> = {
  request: RequestView,
  client: ClientView,
  verdict: VerdictView,
  fingerprint: FingerprintView,
}
