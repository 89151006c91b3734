import type { IncomingHttpHeaders } from 'node:http'
import { type InnerList, serializeInnerList } from 'structured-headers'
import type { AgentKey } from './agent-key.ts'
import { type SignatureTimes, signatureTimes, verifyBytes } from './http-signature.ts'
import { type LabelledSignature, readSignatureFields } from './signature-fields.ts'

/** What the answer that a key directory came in says of its keys. */
export interface DirectoryProof {
  /** Those that have signed it, rightly. */
  readonly keys: readonly AgentKey[]
  /** Then the first of these signatures ends. */
  readonly untilMs: number
}

/**
 * Whoever serves a directory may sign his answer with each key that is in it, for the host he is asked at: nobody else
 * can show the keys of others as his own (draft-ietf-webbotauth-httpsig-directory). `null`: it is not signed so. `host`:
 * with its port, where that is not the usual one.
 */
export function directoryProof(
  headers: IncomingHttpHeaders,
  host: string,
  keys: readonly AgentKey[],
  nowMs: number,
): DirectoryProof | null {
  const read = readSignatureFields(flatHeaders(headers))
  if (read.kind === 'unsigned') return null
  const signatures = read.kind === 'signatures' ? read.signatures : []
  const own = signatures.filter(({ input }) => input[1].get('tag') === TAG)
  // Of a signature for something else nothing is known here; a damaged one is one that does not hold.
  if (read.kind === 'signatures' && own.length === 0) return null
  const proven = new Map<AgentKey, number>()
  for (const signature of own) {
    const found = keyOf(signature, keys)
    const times = found === undefined ? null : timesOf(signature.input, nowMs)
    if (found === undefined || times === null || !isSignedBy(signature, found, host)) continue
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

/** It covers the host of the request, and nothing that we would have to know besides. */
function isSignedBy({ input, bytes }: LabelledSignature, key: AgentKey, host: string): boolean {
  const [components, parameters] = input
  const [component, another] = components
  if (component === undefined || another !== undefined) return false
  const [name, flags] = component
  if (name !== '@authority' || flags.size !== 1 || flags.get('req') !== true) return false
  const algorithm = parameters.get('alg')
  if (algorithm !== undefined && algorithm !== key.algorithm) return false
  const base = `"@authority";req: ${host}\n"@signature-params": ${serializeInnerList(input)}`
  return verifyBytes(key, base, bytes)
}

function flatHeaders(headers: IncomingHttpHeaders): string[] {
  return ['signature-input', 'signature'].flatMap((name) =>
    [headers[name] ?? []].flat().flatMap((value) => [name, value]),
  )
}

const TAG = 'http-message-signatures-directory'
const TIMES = { needsExpiry: true, ageMaxS: 86_400 * 30, skewS: 60 }
