import type { AgentCard } from '../../classify/known/claims/agent-card.ts'
import type { PlaceFinding } from '../../classify/verdict/proof.ts'

/**
 * Work that workers cannot do on the hot path and send to the parent process: finding keys of agents, looking
 * up addresses, and detecting reused signatures. Plain data: it crosses processes.
 */
export type Inquiry =
  | {
      readonly kind: 'keys'
      readonly agentId: string
      /** Thumbprint of the missing key, or its `kid` with Signature-Key; `null`: any keys. */
      readonly thumbprint: string | null
      /** The agent is named in signatures, so it is not a stranger. */
      readonly isListed: boolean
    }
  | { readonly kind: 'place'; readonly address: string }

/**
 * The result of an Inquiry, or an unrequested one (keys of known agents). It is sent to every worker,
 * including workers that start later.
 */
export type InquiryResult =
  | {
      readonly kind: 'keys'
      readonly agentId: string
      /** Public keys, with `kid`, `alg`, `nbf`, `exp` if present. Empty: no keys are available. */
      readonly keys: readonly Readonly<Record<string, string | number>>[]
      /** The issuer that the document describes, and whose keys it names. Omitted: it is not such a document. */
      readonly issuer?: string
      /** One word for why keys are missing; `null`: the list is complete. */
      readonly why: string | null
      /** Its signature agent card; `null`: none is known. */
      readonly card: AgentCard | null
      /** The URLs of the registries that list it. */
      readonly registries: readonly string[]
      /** The address ranges of its card; `null`: none, or not known yet. */
      readonly ranges: readonly string[] | null
      /** From then on a worker that misses a key may ask again. */
      readonly askAgainMs: number
      /** From then on a worker asks again to keep the keys up to date. */
      readonly freshUntilMs: number
      /** From then on the finding is expired. */
      readonly untilMs: number
    }
  | {
      readonly kind: 'place'
      readonly address: string
      readonly place: PlaceFinding
      readonly untilMs: number
    }

/** How much memory a finding takes, in keys of some kilobytes each. Cards are as long as their owners like. */
export function sizeOf(finding: InquiryResult): number {
  if (finding.kind === 'place') return 1
  const { keys, card, ranges } = finding
  const published = (card === null ? 0 : JSON.stringify(card).length) + (ranges?.length ?? 0) * RANGE_BYTES
  return 1 + keys.length + Math.ceil(published / KEY_BYTES)
}

/** One use of a valid signature. */
export interface SignatureUse {
  /** From replayIdOf. */
  readonly id: string
  /** Thumbprint of the key. */
  readonly thumbprint: string
  /**
   * The address that may use the signature again: the first one that sent it. `null`: reuse is not allowed
   * (the signature has a nonce).
   */
  readonly holder: string | null
  readonly createdS: number
  readonly goodUntilMs: number
  /** The owner of the key is a listed agent, not a stranger. */
  readonly isListed: boolean
}

/** How a worker reaches the process that answers inquiries. */
export interface Investigator {
  /** Returns at once and may have no result. Repeated inquiries are merged. */
  ask(inquiry: Inquiry): void
  /**
   * Whether the signature may be used: `false` if it was used before, `null` if that is unknown or the answer
   * is late. Never rejects.
   */
  claim(use: SignatureUse): Promise<boolean | null>
  /** Called once, before the first inquiry. */
  onFinding(listener: (finding: InquiryResult) => void): void
}

const KEY_BYTES = 2_048
const RANGE_BYTES = 48
