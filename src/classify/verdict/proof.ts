import type { Verification } from '../known/software.ts'

/**
 * What is known of who sent a request beyond what he shows: found out by identity/, off the hot path, and given to
 * `classify` with the request. Nothing here is a claim.
 */
export interface Proofs {
  /** `null`: it is not signed. */
  readonly signature: SignatureFinding | null
  /** `null`: nobody finds that out. */
  readonly places: Places | null
}

/** Knows what some addresses are; of others it lets that be found out, for the next request. */
export interface Places {
  /** `shows`: how whoever is said to be there can be told by it. */
  of(address: string, shows: Pick<Verification, 'reverseDns' | 'asns'>): PlaceFinding | null
}

/** What became of a signature of Web Bot Auth. */
export type SignatureFinding =
  | {
      readonly kind: 'proven'
      /** Who has signed: the origin or URL that Signature-Agent says, as readAgentId gives it. */
      readonly agentId: string
      /** Of the key: RFC 7638. */
      readonly thumbprint: string
    }
  /** Nobody can say, now: the key is not known yet, or too many were checked. It speaks against nobody. */
  | { readonly kind: 'unchecked'; readonly why: string; readonly agentId: string | null }
  /** It is none, or somebody else's, or of another time: `why` is one of identity's names of faults. */
  | { readonly kind: 'failed'; readonly why: string; readonly agentId: string | null }

/** What an address is, by others than who has it. */
export interface PlaceFinding {
  /** The names that it has, and that have it (forward-confirmed reverse DNS): in lower case, without a dot at the end. */
  readonly hosts: readonly string[]
  /** Whether DNS has answered for all of its names: only then it says something that none is an agent's. */
  readonly isHostKnown: boolean
  /** By the operator's file; `null` where it does not say. */
  readonly network: { readonly asn: number; readonly name: string | null } | null
}

/** How an identity was proven, and whose it is. */
export interface Proof {
  readonly method: ProofMethod
  /** With `web-bot-auth` who has signed, as a URL; else the id of the Software. */
  readonly agent: string
  /** The thumbprint of the key, with `web-bot-auth`. */
  readonly key: string | null
}

export type ProofMethod = (typeof PROOF_METHODS)[number]

/** The best first: a key is its owner's alone, an address may be another's tomorrow. */
export const PROOF_METHODS = ['web-bot-auth', 'ip-range', 'reverse-dns'] as const

export const NO_PROOFS: Proofs = { signature: null, places: null }
