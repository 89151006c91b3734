import type { Proof } from './proof.ts'

/** One reason to believe something about a client. Evidence never decides; it only speaks. */
export interface Evidence {
  readonly kind: string
  readonly detail: string
  readonly weight: number
}

/** What the evidence adds up to. `unknown` is an answer, not a failure. */
export interface Verdict {
  readonly kind: 'agent' | 'automation' | 'human' | 'unknown'
  readonly agent: { readonly id: string; readonly name: string; readonly category: string } | null
  /** Any program we know, agents too; `null` where none is known. */
  readonly software: {
    readonly id: string
    readonly name: string
    readonly kind: 'agent' | 'tool' | 'browser'
  } | null
  /** In [0, 1]. */
  readonly confidence: number
  /** How the identity was proven, and whose it is, which need be nobody we know; `null` unless it was. */
  readonly proof: Proof | null
  /** Kinds of evidence that deny who it says, or has proven, to be. */
  readonly conflicts: readonly string[]
  /** Strongest first. */
  readonly evidence: readonly Evidence[]
}

export const UNKNOWN: Verdict = {
  kind: 'unknown',
  agent: null,
  software: null,
  confidence: 0,
  proof: null,
  conflicts: [],
  evidence: [],
}
