import type { AddressRanges } from '../../wire/address-ranges.ts'
import type { AgentCard } from '../known/claims/agent-card.ts'
import type { Verification } from '../known/software.ts'

/**
 * What is known about the sender of a request beyond what the client shows. identity/ finds it out off the
 * hot path and passes it to `classify` with the request. None of it is a mere claim.
 */
export interface Proofs {
  /** `null`: the request is not signed. */
  readonly signature: SignatureFinding | null
  /** `null`: addresses are not looked up. */
  readonly places: Places | null
}

/**
 * Knows the host names and networks of some addresses. An unknown address is looked up in the background, for
 * the next request.
 */
export interface Places {
  /** `shows`: the host names and networks that identify the claimed agent. */
  of(address: string, shows: Pick<Verification, 'reverseDns' | 'asns'>): PlaceFinding | null
}

/** The result of checking a Web Bot Auth signature. */
export type SignatureFinding = SignatureResult & {
  /** A signature of the Trusted Agent Protocol stands beside it, or alone. It is not verified. */
  readonly payment?: PaymentTag
}

/** Of Visa's Trusted Agent Protocol: an agent that looks around in a shop, and one that pays. */
export type PaymentTag = (typeof PAYMENT_TAGS)[number]
export const PAYMENT_TAGS = ['agent-browser-auth', 'agent-payer-auth'] as const

type SignatureResult =
  | {
      readonly kind: 'proven'
      /** The signer: the origin or URL in Signature-Agent, as readAgentId returns it. */
      readonly agentId: string
      /** The RFC 7638 thumbprint of the key. */
      readonly thumbprint: string
      /** What the signer says about itself; `null`: nothing. */
      readonly about: SignerFacts | null
    }
  /**
   * The signature is valid, and its key came with the request (Signature-Key). Any client can create such a key: it names no
   * agent. Whether the request was sent before is not checked, but for a key in a token about a person.
   */
  | {
      readonly kind: 'key'
      readonly thumbprint: string
      /** The issuer that says, in a token with the key, that an agent with this key acts for a person it knows. */
      readonly personOf?: string
    }
  /**
   * The signature cannot be checked now: its key is not known yet, or too many signatures are being checked.
   * This is not evidence against the client.
   */
  | { readonly kind: 'unchecked'; readonly why: string; readonly agentId: string | null }
  /**
   * The signature is malformed, made with another key, or out of its time. `why` is a fault name from
   * identity/.
   */
  | { readonly kind: 'failed'; readonly why: string; readonly agentId: string | null }

/** What is published about a signer. */
export interface SignerFacts {
  /** Its signature agent card; `null`: it has none. */
  readonly card: AgentCard | null
  /** The URLs of the registries that list it. */
  readonly registries: readonly string[]
  /** The addresses that its card publishes; `null`: none, or unknown. */
  readonly ranges: AddressRanges | null
}

/** What others than the client say about an address. */
export interface PlaceFinding {
  /** Host names from forward-confirmed reverse DNS: in lower case, without a dot at the end. */
  readonly hosts: readonly string[]
  /** Whether DNS has answered for all names. Only then is it evidence that none of them is the agent's. */
  readonly isHostKnown: boolean
  /** From the operator's file; `null` if the file does not list it. */
  readonly network: { readonly asn: number; readonly name: string | null } | null
}

/** How an identity was proven, and which identity. */
export interface Proof {
  readonly method: ProofMethod
  /** With `web-bot-auth` the signer, as a URL; otherwise the id of the Software. */
  readonly agent: string
  /** The thumbprint of the key, with `web-bot-auth`. */
  readonly key: string | null
}

export type ProofMethod = (typeof PROOF_METHODS)[number]

/** Strongest first: a key belongs to its owner alone, an address may have another owner tomorrow. */
export const PROOF_METHODS = ['web-bot-auth', 'ip-range', 'reverse-dns'] as const

/**
 * A proven identity is certain, except for stolen keys and addresses that have a new owner. One in a thousand
 * is an estimate, and higher than unproven evidence ever reaches.
 */
export const PROVEN_CONFIDENCE = 0.999

export const NO_PROOFS: Proofs = { signature: null, places: null }
