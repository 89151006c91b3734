import { createHash } from 'node:crypto'
import type { Knowledge } from '../classify/known/knowledge.ts'
import { Fault } from '../shared/fault.ts'
import { type Policy, parsePolicy } from '../policy/policy.ts'
import { isSignatureSet, type SignatureSet } from './signature-set.ts'

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
}

/** The same in the form that travels: `policy` is as its author wrote it, and compiled where it arrives. */
export interface SnapshotDocument {
  readonly number: number
  readonly hash: string
  readonly madeAtMs: number
  readonly policy: unknown
  readonly signatures: SignatureSet | null
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

/** `knowledge` is what has been made of the document's signatures: the policy is compiled with the names in it. */
export function parseSnapshot(document: unknown, knowledge: Knowledge | null = null): Snapshot {
  if (!isSnapshotDocument(document)) throw new Fault('SNAPSHOT_INVALID', 'this is no Snapshot')
  const { number, hash, madeAtMs } = document
  const policy = parsePolicy(document.policy, null, knowledge?.names ?? null)
  return Object.freeze({ number, hash, madeAtMs, policy, knowledge })
}

export function isSnapshotDocument(value: unknown): value is SnapshotDocument {
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
