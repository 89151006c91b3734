import type { PlaceFinding } from '../../classify/verdict/proof.ts'

/**
 * What workers cannot find out on the hot path, and the process above them does: the keys of agents, what addresses are,
 * and which signatures were used before. Plain data: it crosses processes.
 */
export type Inquiry =
  | {
      readonly kind: 'keys'
      readonly agentId: string
      /** Of a key that should be among them; `null`: of whichever there are. */
      readonly thumbprint: string | null
      /** Signatures name it: it is no stranger. */
      readonly isListed: boolean
    }
  | { readonly kind: 'place'; readonly address: string }

/** What came of an Inquiry, or came without one (keys of known agents): every worker is told, also those that start later. */
export type Finding =
  | {
      readonly kind: 'keys'
      readonly agentId: string
      /** Public, with their `kid`, `alg`, `nbf`, `exp` where they have them; none: there are none to be had. */
      readonly keys: readonly Readonly<Record<string, string | number>>[]
      /** One word for why there are no others: they could not be had. `null`: these are all. */
      readonly why: string | null
      /** Who misses a key in it may ask again from then on. */
      readonly askAgainMs: number
      /** Who wants it up to date asks again from then on. */
      readonly freshUntilMs: number
      /** From then on nothing is known any more. */
      readonly untilMs: number
    }
  | {
      readonly kind: 'place'
      readonly address: string
      readonly place: PlaceFinding
      readonly untilMs: number
    }

/** One use of a signature that was found right. */
export interface SignatureUse {
  /** As replayIdOf gives it. */
  readonly id: string
  /** Of the key. */
  readonly thumbprint: string
  /** Who may use it again: `null` nobody (it has a nonce); else the address that it first came from. */
  readonly holder: string | null
  readonly createdS: number
  readonly goodUntilMs: number
  /** Whose key it is, is no stranger. */
  readonly isListed: boolean
}

/** How a worker reaches who finds out. */
export interface Investigator {
  /** Does not wait, and may come to nothing; asking twice is once. */
  ask(inquiry: Inquiry): void
  /** Whether it may be used: `false` where it was before, `null` where nobody can tell, or not in time. Never rejects. */
  claim(use: SignatureUse): Promise<boolean | null>
  /** Called once, before any is asked. */
  onFinding(listener: (finding: Finding) => void): void
}
