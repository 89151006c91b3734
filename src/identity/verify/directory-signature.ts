import type { IncomingHttpHeaders } from 'node:http'
import { type InnerList, type Item, serializeInnerList, serializeItem } from 'structured-headers'
import type { AgentKey } from '../keys/agent-key.ts'
import { isDigestOf, readContentDigest } from '../signature/content-digest.ts'
import { type SignatureTimes, signatureTimes, verifyBytes } from './http-signature.ts'
import { ComponentValues, componentOf } from '../signature/signature-base.ts'
import { type LabelledSignature, readSignatureFields } from '../signature/signature-fields.ts'

/** A response with status 200 to a request for a key directory. */
export interface DirectoryAnswer {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Uint8Array
}

/** What the signatures of a directory prove. */
export interface DirectoryProof {
  /** The keys that have signed the directory correctly. */
  readonly keys: readonly AgentKey[]
  /** The expiry of the first of these signatures. */
  readonly untilMs: number
}

/**
 * The server of a directory may sign its response with each key in it, for the requested host. Then no other
 * server can present these keys as its own (draft-ietf-webbotauth-httpsig-directory). `isWhole`: the signatures must
 * also cover the digest of the body. `null`: unsigned.
 */
export function directoryProof(
  answer: DirectoryAnswer,
  keys: readonly AgentKey[],
  nowMs: number,
  isWhole = false,
): DirectoryProof | null {
  const rawHeaders = rawHeadersOf(answer.headers)
  const read = readSignatureFields(rawHeaders)
  if (read.kind === 'unsigned') return null
  const signatures = read.kind === 'signatures' ? read.signatures : []
  const own = signatures.filter(({ input }) => input[1].get('tag') === TAG)
  // Signatures with another tag do not count. A damaged signature counts as invalid.
  if (read.kind === 'signatures' && own.length === 0) return null
  const values = new AnswerValues(answer, rawHeaders)
  const proven = new Map<AgentKey, number>()
  for (const signature of own) {
    const found = keyOf(signature, keys)
    const times = found === undefined ? null : timesOf(signature.input, nowMs)
    if (found === undefined || times === null || !isSignedBy(signature, found, values)) continue
    if (isWhole && !coversBody(signature)) continue
    proven.set(found, Math.max(times.goodUntilMs, proven.get(found) ?? 0))
  }
  return { keys: [...proven.keys()], untilMs: Math.min(...proven.values()) }
}

/** Values of components of the response and, with `;req`, of the request (RFC 9421 §2.4). */
class AnswerValues {
  readonly #answer: ComponentValues
  readonly #request: ComponentValues
  /** Whether Content-Digest matches the body. */
  readonly #isDigestRight: boolean

  constructor({ url, body }: DirectoryAnswer, rawHeaders: readonly string[]) {
    const { origin: base, pathname, search } = new URL(url)
    this.#answer = new ComponentValues({ method: '', base: '', target: '', rawHeaders })
    this.#request = new ComponentValues({ method: 'GET', base, target: pathname + search, rawHeaders: [] })
    const digests = readContentDigest(rawHeaders)
    this.#isDigestRight = digests !== null && isDigestOf(digests, body)
  }

  /** `null`: missing, unknown, or wrong. */
  of([name, parameters]: Item): string | null {
    const isOfRequest = parameters.get('req') === true
    const others = new Map([...parameters].filter(([parameter]) => !(isOfRequest && parameter === 'req')))
    if (name === '@status' && parameters.size === 0) return '200'
    const isDerived = typeof name === 'string' && name.startsWith('@')
    // A response has no authority. The first implementations meant the request's without `;req`.
    if (isDerived && !isOfRequest && !(name === AUTHORITY && parameters.size === 0)) return null
    if (name === 'content-digest' && !this.#isDigestRight) return null
    const component = componentOf([name, others])
    if (component === null) return null
    return (isOfRequest || isDerived ? this.#request : this.#answer).of(component)
  }
}

function keyOf({ input }: LabelledSignature, keys: readonly AgentKey[]): AgentKey | undefined {
  const keyId = input[1].get('keyid')
  return keys.find(({ thumbprint, kid }) => keyId === thumbprint || (kid !== null && keyId === kid))
}

function timesOf(input: InnerList, nowMs: number): SignatureTimes | null {
  const times = signatureTimes(input[1], TIMES, nowMs)
  return typeof times === 'string' ? null : times
}

function isSignedBy({ input, bytes }: LabelledSignature, key: AgentKey, values: AnswerValues): boolean {
  const algorithm = input[1].get('alg')
  if (algorithm !== undefined && algorithm !== key.algorithm) return false
  const base = baseOf(input, values)
  return base !== null && verifyBytes(key, base, bytes)
}

/** `null`: the host is not covered, or a component is unknown. */
function baseOf(input: InnerList, values: AnswerValues): string | null {
  const covered = new Set<string>()
  let base = ''
  for (const identifier of input[0]) {
    const text = serializeItem(identifier)
    const value = values.of(identifier)
    if (value === null || covered.has(text)) return null
    covered.add(text)
    base += `${text}: ${value}\n`
  }
  if (!HOSTS.some((text) => covered.has(text))) return null
  return `${base}"@signature-params": ${serializeInnerList(input)}`
}

function coversBody({ input }: LabelledSignature): boolean {
  return input[0].some(([name]) => name === 'content-digest')
}

function rawHeadersOf(headers: IncomingHttpHeaders): string[] {
  return Object.entries(headers).flatMap(([name, lines = []]) =>
    [lines].flat().flatMap((line) => [name, line]),
  )
}

const TAG = 'http-message-signatures-directory'
const AUTHORITY = '@authority'
const HOSTS = [`"${AUTHORITY}";req`, `"${AUTHORITY}"`]
/** Some signatures never expire; the cache time of a directory has its own limits. */
const TIMES = { needsExpiry: true, ageMaxS: 10_000_000_000, skewS: 60 }
