import { isOurHeader } from '../classify/verdict/our-headers.ts'
import { foldHeaderName } from '../wire/header-name.ts'
import type { PolicyRequest } from './request.ts'

/** The facts that an expression can use, and their CEL types. */
export const FIELDS: Readonly<Record<string, Readonly<Record<string, string>> | 'bool'>> = {
  request: {
    method: 'string',
    host: 'string',
    path: 'string',
    query: 'string',
    headers: 'map<string, string>',
  },
  client: { address: 'string' },
  verdict: {
    kind: 'string',
    agent: 'string',
    category: 'string',
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

/**
 * Returns one shared object that reads the most recent request. Values are computed only when an expression
 * uses them.
 */
export function factsFor(request: PolicyRequest): ExpressionFacts {
  current = request
  return FACTS
}

/** A missing value reads as an empty text. */
class RequestView {
  get method(): string {
    return current.facts.method
  }

  get host(): string {
    return current.host === null ? '' : current.host.slice(0, current.hostEnd)
  }

  /** In the form that is being tried, as for the `path` condition. */
  get path(): string {
    const { isPlain, plainPath, path, pathEnd } = current
    return asText(isPlain && plainPath !== null ? plainPath : path.slice(0, pathEnd))
  }

  get query(): string {
    const { path } = current.facts
    const from = path.indexOf('?')
    if (from === -1) return ''
    const end = path.indexOf('#')
    if (end !== -1 && end < from) return ''
    return asText(path.slice(from + 1, end === -1 ? path.length : end))
  }

  get headers(): ReadonlyMap<string, string> {
    current.headers ??= headersOf(current.facts.rawHeaders)
    return current.headers
  }
}

class ClientView {
  get address(): string {
    return current.facts.address
  }
}

class VerdictView {
  get kind(): string {
    return current.facts.verdict.kind
  }

  get agent(): string {
    return current.facts.verdict.agent?.id ?? ''
  }

  get category(): string {
    return current.facts.verdict.agent?.category ?? ''
  }

  get software(): string {
    return current.facts.verdict.software?.id ?? ''
  }

  get confidence(): number {
    return current.facts.verdict.confidence
  }

  get verified(): boolean {
    return current.facts.verdict.proof !== null
  }

  get proof_method(): string {
    return current.facts.verdict.proof?.method ?? ''
  }

  get signer(): string {
    const { proof } = current.facts.verdict
    return proof?.method === 'web-bot-auth' ? proof.agent : ''
  }

  get evidence(): readonly string[] {
    return current.facts.verdict.evidence.map(({ kind }) => kind)
  }
}

class FingerprintView {
  get ja4(): string {
    return current.facts.print.connection.ja4 ?? ''
  }

  get ja4h(): string {
    return current.facts.print.ja4h ?? ''
  }

  get stable(): string {
    return current.facts.print.connection.stable ?? ''
  }

  get http2(): string {
    return current.facts.print.connection.http2 ?? ''
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
    if (bytes.charCodeAt(i) > 0x7f) return DECODER.decode(Buffer.from(bytes, 'latin1'))
  }
  return bytes
}

const DECODER = new TextDecoder()
const FACTS: ExpressionFacts = {
  request: new RequestView(),
  client: new ClientView(),
  verdict: new VerdictView(),
  fingerprint: new FingerprintView(),
  get forged() {
    return current.facts.forged.length > 0
  },
}
let current: PolicyRequest

/** The class of each fact group, by name. */
export const VIEWS: Readonly<Record<string, new () => object>> = {
  request: RequestView,
  client: ClientView,
  verdict: VerdictView,
  fingerprint: FingerprintView,
}
