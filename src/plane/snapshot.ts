import { createHash } from 'node:crypto'
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
}

/** The same in the form that travels: `policy` is as its author wrote it, and compiled where it arrives. */
export interface SnapshotDocument {
  readonly number: number
  readonly hash: string
  readonly madeAtMs: number
  readonly policy: unknown
}

/** Throws a Fault with every problem the policy has, so that a bad one is never sent. */
export function makeSnapshot(number: number, policy: unknown, madeAtMs: number): SnapshotDocument {
  parsePolicy(policy)
  const hash = createHash('sha256').update(JSON.stringify(policy)).digest('hex')
  return { number, hash, madeAtMs, policy }
}

export function parseSnapshot(document: unknown): Snapshot {
  if (!isDocument(document)) throw new Fault('SNAPSHOT_INVALID', 'this is no Snapshot')
  const { number, hash, madeAtMs } = document
  return Object.freeze({ number, hash, madeAtMs, policy: parsePolicy(document.policy) })
}

function isDocument(value: unknown): value is SnapshotDocument {
  if (typeof value !== 'object' || value === null) return false
  const { number, hash, madeAtMs } = value as Partial<Record<keyof SnapshotDocument, unknown>>
  return (
    Number.isSafeInteger(number) &&
    typeof hash === 'string' &&
    typeof madeAtMs === 'number' &&
    'policy' in value
  )
}
