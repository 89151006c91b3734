import { createHash, randomBytes } from 'node:crypto'
import { compileKnowledge, type Knowledge } from '../classify/knowledge.ts'
import { parseSoftwareList, type Software } from '../classify/software.ts'
import { softwareDocument } from '../classify/software-document.ts'
import { parseWeights } from '../classify/weights.ts'
import { Fault } from '../fault.ts'
import { type Policy, parsePolicy } from '../policy/policy.ts'

/** What proxies judge by. Never changed: the next one takes its place whole. */
export interface Snapshot {
  /** Rises with each. */
  readonly number: number
  /** SHA-256 of what it was made from, in hexadecimal: equal on two machines that judge alike. */
  readonly hash: string
  readonly madeAtMs: number
  readonly policy: Policy
  /** What clients are known by; `null` where nobody has said anything of them, and every verdict is unknown. */
  readonly knowledge: Knowledge | null
  /** Of what the knowledge was made from. */
  readonly signaturesHash: string | null
}

/** What knowledge is made from, in the form that travels. */
export interface SignatureSet {
  readonly hash: string
  /** JSON: `software`, as files of signatures have it, and `weights`. It takes a fifth of what the objects take. */
  readonly text: string
}

/** The same in the form that travels: `policy` is as its author wrote it, and compiled where it arrives. */
export interface SnapshotDocument {
  readonly number: number
  readonly hash: string
  readonly madeAtMs: number
  readonly policy: unknown
  readonly signatures: SignatureSet | null
}

/** Throws a Fault at weights that are none. */
export function makeSignatureSet(list: readonly Software[], weights: unknown): SignatureSet {
  parseWeights(weights)
  const text = JSON.stringify({ software: list.map(softwareDocument), weights })
  return { hash: createHash('sha256').update(text).digest('hex'), text }
}

/** Throws a Fault with every problem the policy has, so that a bad one is never sent. */
export function makeSnapshot(
  number: number,
  policy: unknown,
  madeAtMs: number,
  signatures: SignatureSet | null = null,
): SnapshotDocument {
  parsePolicy(policy)
  const hash = createHash('sha256').update(JSON.stringify(policy))
  if (signatures !== null) hash.update(signatures.hash)
  return { number, hash: hash.digest('hex'), madeAtMs, policy, signatures }
}

/** `before`: what is made of the same signatures is taken from it. */
export function parseSnapshot(document: unknown, before: Snapshot | null = null): Snapshot {
  if (!isDocument(document)) throw new Fault('SNAPSHOT_INVALID', 'this is no Snapshot')
  const { number, hash, madeAtMs, signatures } = document
  return Object.freeze({
    number,
    hash,
    madeAtMs,
    policy: parsePolicy(document.policy),
    knowledge: knowledgeFrom(signatures, before),
    signaturesHash: signatures?.hash ?? null,
  })
}

function knowledgeFrom(signatures: SignatureSet | null, before: Snapshot | null): Knowledge | null {
  if (signatures === null) return null
  if (before?.signaturesHash === signatures.hash) return before.knowledge
  const { software, weights } = JSON.parse(signatures.text)
  const seed = randomBytes(8)
  return compileKnowledge(parseSoftwareList(software), parseWeights(weights), [
    seed.readInt32LE(0),
    seed.readInt32LE(4),
  ])
}

function isDocument(value: unknown): value is SnapshotDocument {
  if (typeof value !== 'object' || value === null) return false
  const { number, hash, madeAtMs, signatures } = value as Partial<Record<keyof SnapshotDocument, unknown>>
  return (
    Number.isSafeInteger(number) &&
    typeof hash === 'string' &&
    typeof madeAtMs === 'number' &&
    'policy' in value &&
    (signatures === null || isSignatureSet(signatures))
  )
}

function isSignatureSet(value: unknown): value is SignatureSet {
  if (typeof value !== 'object' || value === null) return false
  const { hash, text } = value as Partial<Record<keyof SignatureSet, unknown>>
  return typeof hash === 'string' && typeof text === 'string'
}
