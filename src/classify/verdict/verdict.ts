import type { Proof } from './proof.ts'

/** One reason to believe something about a client. One piece of evidence alone never decides. */
export interface Evidence {
  readonly kind: string
  readonly detail: string
  readonly weight: number
}

/** The result of all evidence. `unknown` is an answer, not a failure. */
export interface Verdict {
  readonly kind: 'agent' | 'automation' | 'human' | 'unknown'
  readonly agent: {
    readonly id: string
    readonly name: string
    readonly category: string
    /** As published; empty if nothing is published. */
    readonly purposes: readonly string[]
  } | null
  /** The known program, agent or not; `null` if none is recognized. */
  readonly software: {
    readonly id: string
    readonly name: string
    readonly kind: 'agent' | 'tool' | 'browser'
  } | null
  /** How sure the kind is, from 0 to 1. */
  readonly confidence: number
  /** How sure it is that the client is `agent` or `software`, from 0 to 1; 0 without a name. */
  readonly nameConfidence: number
  /**
   * How the identity was proven, and which identity; it need not be a listed agent. `null` if it is not
   * proven.
   */
  readonly proof: Proof | null
  /** Kinds of evidence that contradict the claimed or proven identity. */
  readonly conflicts: readonly string[]
  /** Strongest first. */
  readonly evidence: readonly Evidence[]
}

export const UNKNOWN: Verdict = {
  kind: 'unknown',
  agent: null,
  software: null,
  confidence: 0,
  nameConfidence: 0,
  proof: null,
  conflicts: [],
  evidence: [],
}
