import { type InnerList, type Item, serializeInnerList } from 'structured-headers'
import type { AgentKey } from './agent-key.ts'
import { isDigestOf, readContentDigest } from './content-digest.ts'
import type { GuardedAnswer } from './guarded-get.ts'
import { type SignatureTimes, signatureTimes, verifyBytes } from './http-signature.ts'
import { componentOf, fieldValue } from './signature-base.ts'
import { type LabelledSignature, readSignatureFields } from './signature-fields.ts'

/** What a key directory came in. */
export type DirectoryAnswer = Pick<GuardedAnswer, 'headers' | 'body'>

/** What the answer that a key directory came in says of its keys. */
export interface DirectoryProof {
  /** Those that have signed it, rightly. */
  readonly keys: readonly AgentKey[]
  /** Then the first of these signatures ends. */
  readonly untilMs: number
}

/**
 * Whoever serves a directory may sign his answer with each key that is in it, for the host he is asked at: nobody else
 * can show the keys of others as his own (draft-meunier-webbotauth-httpsig-protocol-02, appendix C). `null`: it is not
 * signed so. `host`: with its port, where that is not the usual one.
 */
export function directoryProof(
  answer: DirectoryAnswer,
  host: string,
  keys: readonly AgentKey[],
  nowMs: number,
): DirectoryProof | null {
  const rawHeaders = flatHeaders(answer)
  const read = readSignatureFields(rawHeaders)
  if (read.kind === 'unsigned') return null
  const signatures = read.kind === 'signatures' ? read.signatures : []
  const own = signatures.filter(({ input }) => input[1].get('tag') === TAG)
  // Of a signature for something else nothing is known here; a damaged one is one that does not hold.
  if (read.kind === 'signatures' && own.length === 0) return null
  const proven = new Map<AgentKey, number>()
  for (const signature of own) {
    const found = keyOf(signature, keys)
    const times = found === undefined ? null : timesOf(signature.input, nowMs)
    const base = times === null ? null : baseOf(signature.input, { rawHeaders, body: answer.body, host })
    if (found === undefined || times === null || base === null) continue
    if (!isOfAlgorithm(signature, found) || !verifyBytes(found, base, signature.bytes)) continue
    proven.set(found, Math.max(times.goodUntilMs, proven.get(found) ?? 0))
  }
  return { keys: [...proven.keys()], untilMs: Math.min(...proven.values()) }
}

function keyOf({ input }: LabelledSignature, keys: readonly AgentKey[]): AgentKey | undefined {
  const keyId = input[1].get('keyid')
  return keys.find(({ thumbprint, kid }) => keyId === thumbprint || (kid !== null && keyId === kid))
}

function timesOf(input: InnerList, nowMs: number): SignatureTimes | null {
  const times = signatureTimes(input[1], TIMES, nowMs)
  return typeof times === 'string' ? null : times
}

function isOfAlgorithm({ input }: LabelledSignature, { algorithm }: AgentKey): boolean {
  const said = input[1].get('alg')
  return said === undefined || said === algorithm
}

interface Answered {
  /** Flat. */
  readonly rawHeaders: readonly string[]
  readonly body: Buffer
  readonly host: string
}

/**
 * What was signed; `null`: it is not the host of the request with fields of the answer, or not of this answer. The
 * digest of the body has to be covered since 2026-08; drafts before that knew the host alone.
 */
function baseOf(input: InnerList, { rawHeaders, body, host }: Answered): string | null {
  const lines = new Map<string, string>()
  for (const item of input[0]) {
    const component = componentOf(item)
    const text = isHostOfRequest(item) ? HOST_OF_REQUEST : component?.text
    const field = component?.form.kind === 'field' ? fieldValue(rawHeaders, component.name) : null
    const value = text === HOST_OF_REQUEST ? host : field
    if (text === undefined || value === null || lines.has(text)) return null
    if (component?.name === 'content-digest' && !isBodyOf(rawHeaders, body)) return null
    lines.set(text, value)
  }
  if (!lines.has(HOST_OF_REQUEST)) return null
  const covered = [...lines].map(([text, value]) => `${text}: ${value}\n`).join('')
  return `${covered}"@signature-params": ${serializeInnerList(input)}`
}

function isHostOfRequest([name, flags]: Item): boolean {
  return name === '@authority' && flags.size === 1 && flags.get('req') === true
}

function isBodyOf(rawHeaders: readonly string[], body: Buffer): boolean {
  const digests = readContentDigest(rawHeaders)
  return digests !== null && isDigestOf(digests, body)
}

function flatHeaders({ headers }: DirectoryAnswer): string[] {
  return Object.entries(headers).flatMap(([name, values]) =>
    [values ?? []].flat().flatMap((value) => [name, value]),
  )
}

const HOST_OF_REQUEST = '"@authority";req'
const TAG = 'http-message-signatures-directory'
/** It may be good for long, as that of the draft's own example is: what is fetched is asked for again all the same. */
const TIMES = { needsExpiry: true, ageMaxS: 86_400 * 36_525, skewS: 60 }
