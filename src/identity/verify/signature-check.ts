import type { PaymentTag, SignatureFinding } from '../../classify/verdict/proof.ts'
import { type AgentKey, isInTime } from '../keys/agent-key.ts'
import type { DocumentRules } from '../keys/agent-document.ts'
import type { FailureBudget } from './failure-budget.ts'
import { type HttpSignature, replayIdOf, verifyBytes, verifySignature } from './http-signature.ts'
import type { SignatureUse } from '../keys/inquiry.ts'
import type { KeyBook, KnownKeys } from '../keys/key-book.ts'
import { fieldValue, type SignedRequest } from '../signature/signature-base.ts'
import type { SignatureKey } from '../signature/signature-key.ts'
import {
  type Delegation,
  type InlineSignature,
  type KeyedSignature,
  namesAlgorithm,
  type PublishedSignature,
  withKeyedSignatures,
} from './keyed-signature.ts'
import {
  type BotSignature,
  namesAgent,
  paymentTagIn,
  type ReadBotSignature,
  readBotSignatures,
} from './web-bot-auth.ts'

export interface SignatureRules extends DocumentRules {
  /** Whether each signature needs a nonce, so that it is valid for one request only. */
  readonly needsNonce: boolean
  /** Whether keys may be named in Signature-Key. */
  readonly readsSignatureKey: boolean
}

/** `unknown`: the own hosts are not configured. */
export type HostOwner = 'ours' | 'other' | 'unknown'

/** A request and its sender. */
export interface SentRequest extends SignedRequest {
  /** Who owns the requested host: a signature for another host is not for us. */
  readonly host: HostOwner
  readonly address: string
  /** The key for counting failures: for IPv6 the /64. */
  readonly network: string
}

export type Checked =
  | { readonly kind: 'finding'; readonly finding: SignatureFinding }
  /** The signature is valid. The caller must still check that it is used for the first time. */
  | {
      readonly kind: 'use'
      readonly finding: SignatureFinding & { readonly kind: 'proven' | 'key' }
      readonly use: SignatureUse
      /** The id under which its keys are found. */
      readonly keysOf: string
      /** The keys used are due for a refresh. */
      readonly isStale: boolean
    }
  /** The key must be fetched first. `finding` is for callers that do not wait. */
  | {
      readonly kind: 'no-key'
      readonly finding: SignatureFinding
      /** The id under which its keys are found. */
      readonly agentId: string
      /** With Signature-Key the `kid`. */
      readonly thumbprint: string
    }

/**
 * Checks whether a request is signed by the agent that it claims (Web Bot Auth), using known keys. Never
 * waits, never throws.
 */
export class SignatureCheck {
  readonly #rules: SignatureRules
  readonly #keys: KeyBook
  readonly #budget: FailureBudget

  constructor(rules: SignatureRules, keys: KeyBook, budget: FailureBudget) {
    this.#rules = rules
    this.#keys = keys
    this.#budget = budget
  }

  /**
   * Each signature is checked by itself, and the strongest result counts: a valid one of a listed agent, another valid
   * one, one that waits for a key, an invalid one. `null`: unsigned, or signed for another purpose (another tag) and
   * without a claimed agent.
   */
  check(asked: SentRequest, nowMs: number): Checked | null {
    const { network } = asked
    if (!this.#budget.mayRead(network, nowMs)) return unchecked('too-many', null)
    const named = keyNamed(asked.rawHeaders)
    // Check the budget first: parsing costs more than verifying.
    if (named !== null && !this.#budget.mayCheck(network, named, nowMs)) return unchecked('too-many', null)
    const bots = readBotSignatures(asked, this.#rules, nowMs)
    const read = this.#rules.readsSignatureKey ? withKeyedSignatures(bots, asked, this.#rules, nowMs) : bots
    const [first] = read
    if (first?.kind === 'refused' && OF_OTHERS.has(first.fault) && !namesAgent(asked.rawHeaders)) return null
    let strongest: Checked | null = null
    for (const [index, each] of read.entries()) {
      const checked = index < CHECKED_MAX ? this.#checkOne(each, asked, nowMs) : unchecked('too-many', null)
      if (strongest === null || rankOf(checked) > rankOf(strongest)) strongest = checked
      if (rankOf(strongest) === LISTED_RANK) break
    }
    const payment = paymentTagIn(asked.rawHeaders)
    return payment === null || strongest === null ? strongest : withPayment(strongest, payment)
  }

  #checkOne(read: ReadBotSignature | KeyedSignature, asked: SentRequest, nowMs: number): Checked {
    const { network } = asked
    if (read.kind === 'refused') {
      const { fault } = read
      // Another server may know the owner of the key without Signature-Agent; this one does not.
      const isUnknown = fault === 'no-agent' && !namesAgent(asked.rawHeaders)
      if (isUnknown || NOT_FOLLOWED.has(fault)) return unchecked(fault, null)
      return this.#failed(fault, null, network, null, nowMs)
    }
    const { signature } = read
    const agentId = read.kind === 'inline' ? null : read.agentId
    if (asked.host === 'other') return this.#failed('other-host', agentId, network, null, nowMs)
    if (asked.host === 'unknown') return unchecked('unknown-host', agentId)
    if (this.#rules.needsNonce && !signature.nonce)
      return this.#failed('no-nonce', agentId, network, null, nowMs)
    return read.kind === 'inline'
      ? this.#checkInline(read, network, nowMs)
      : this.#checkPublished(read, asked, nowMs)
  }

  /**
   * Any client can create such keys: remembering their uses would make room for nothing else. So one signature can be sent
   * again and again, and each counts against the budget of its address.
   */
  #checkInline({ key, signature }: InlineSignature, network: string, nowMs: number): Checked {
    const { thumbprint } = key
    const wrong = this.#verify(signature, key, null, network, nowMs)
    if (wrong !== null) return wrong
    this.#budget.failed(network, null, nowMs)
    return { kind: 'finding', finding: { kind: 'key', thumbprint } }
  }

  #checkPublished(read: BotSignature | PublishedSignature, asked: SentRequest, nowMs: number): Checked {
    const { network } = asked
    const { agentId, signature } = read
    const keysOf = read.kind === 'published' ? read.keysOf : agentId
    const known = this.#keys.of(keysOf, nowMs)
    const key = known === null ? undefined : keyIn(known, read)
    if (known === null || key === undefined) {
      if (known === null || known.askAgainMs <= nowMs) {
        const thumbprint = read.kind === 'published' ? read.kid : read.thumbprint
        return { kind: 'no-key', agentId: keysOf, thumbprint, finding: notYet(agentId) }
      }
      if (known.why !== null) return unchecked(known.why, agentId)
      // A key of a kind that is not supported here is unknown, too.
      if (read.kind === 'published') return unchecked('ignored-key', agentId)
      return this.#failed('unknown-key', agentId, network, null, nowMs)
    }
    if (known.issuer !== (read.kind === 'published' ? read.issuer : null))
      return unchecked('no-directory', agentId)
    if (read.kind === 'published' && !namesAlgorithm(key.jwk)) return unchecked('ignored-key', agentId)
    if (!key.signsRequests) return this.#failed('other-algorithm', agentId, network, null, nowMs)
    if (!isInTime(key, nowMs)) return this.#failed('key-out-of-time', agentId, network, null, nowMs)
    const delegation = read.kind === 'published' ? read.delegation : null
    const signer = delegation?.key ?? key
    const wrong =
      this.#verifyToken(delegation, key, agentId, network, nowMs) ??
      this.#verify(signature, signer, agentId, network, nowMs)
    if (wrong !== null) return wrong
    const { thumbprint } = key
    const finding = delegation?.isOfPerson
      ? ({ kind: 'key', thumbprint: signer.thumbprint, personOf: agentId } as const)
      : ({ kind: 'proven', agentId, thumbprint, about: known.about } as const)
    // An issuer can name any number of keys: its uses count together.
    const use = { ...useOf(signature, signer, asked.address, this.#keys.isListed(keysOf)), thumbprint }
    return { kind: 'use', finding, use, keysOf, isStale: known.freshUntilMs <= nowMs }
  }

  /** `null`: the key made the signature. */
  #verify(
    signature: HttpSignature,
    key: SignatureKey,
    agentId: string | null,
    network: string,
    nowMs: number,
  ): Checked | null {
    if (!this.#budget.mayCheck(network, key.thumbprint, nowMs)) {
      this.#budget.failed(network, null, nowMs)
      return unchecked('too-many', agentId)
    }
    const fault = verifySignature(signature, key)
    return fault === null ? null : this.#failed(fault, agentId, network, key.thumbprint, nowMs)
  }

  /** `null`: there is nothing to verify, or the issuer with this key signed the token. Both name one algorithm. */
  #verifyToken(
    token: Delegation | null,
    key: AgentKey,
    agentId: string,
    network: string,
    nowMs: number,
  ): Checked | null {
    if (token === null) return null
    if (!this.#budget.mayCheck(network, key.thumbprint, nowMs)) return unchecked('too-many', agentId)
    const isSigned = token.algorithm === key.jwk['alg'] && verifyBytes(key, token.base, token.bytes)
    return isSigned ? null : this.#failed('token-wrong', agentId, network, key.thumbprint, nowMs)
  }

  /** The finding for a valid signature. `isTaken`: whether its use was accepted. */
  settle(
    { finding, use }: Checked & { readonly kind: 'use' },
    { network }: SentRequest,
    isTaken: boolean | null,
    nowMs: number,
  ): SignatureFinding {
    if (isTaken === true) this.#budget.proven(network, use.thumbprint)
    // Finding a replay costs more than finding an invalid signature.
    else if (isTaken === false) this.#budget.failed(network, use.thumbprint, nowMs)
    return isTaken === true ? finding : usedBefore(finding, isTaken === false)
  }

  #failed(
    why: string,
    agentId: string | null,
    network: string,
    thumbprint: string | null,
    nowMs: number,
  ): Checked {
    this.#budget.failed(network, thumbprint, nowMs)
    return { kind: 'finding', finding: { kind: 'failed', why, agentId } }
  }
}

/** The finding for a reused signature, or if the answer about reuse is late. */
function usedBefore(
  finding: SignatureFinding & { kind: 'proven' | 'key' },
  isKnown: boolean,
): SignatureFinding {
  const agentId = finding.kind === 'proven' ? finding.agentId : (finding.personOf ?? null)
  return isKnown
    ? { kind: 'failed', why: 'replayed', agentId }
    : { kind: 'unchecked', why: 'no-answer', agentId }
}

/** Whether a request has anything for `check`; hardly any request has. */
export function isSigned(rawHeaders: readonly string[]): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === NAME_LENGTH && (name.charCodeAt(0) | 0x20) === 0x73 && NAMES.has(name.toLowerCase()))
      return true
  }
  return false
}

/** The key id, without parsing the rest; `null`: no key id or several, so parsing is needed. */
function keyNamed(rawHeaders: readonly string[]): string | null {
  const text = fieldValue(rawHeaders, 'signature-input')
  const at = text === null ? -1 : text.indexOf(KEY_ID)
  if (text === null || at === -1 || text.includes(KEY_ID, at + 1)) return null
  return text.slice(at + KEY_ID.length + 1, at + KEY_ID.length + 1 + THUMBPRINT_LENGTH)
}

/** Signature-Key names it as its owner does, and Signature-Agent by its thumbprint. */
function keyIn(known: KnownKeys, read: BotSignature | PublishedSignature): AgentKey | undefined {
  if (read.kind === 'signature') return known.byThumbprint.get(read.thumbprint)
  return [...known.byThumbprint.values()].find(({ kid }) => kid === read.kid)
}

function useOf(
  signature: HttpSignature,
  key: SignatureKey,
  address: string,
  isListed: boolean,
): SignatureUse {
  const { nonce, createdS, goodUntilMs } = signature
  const { thumbprint } = key
  const id = replayIdOf(signature, key)
  // Without a nonce, many requests of one second may have the same signature.
  return { id, thumbprint, holder: nonce === null ? address : null, createdS, goodUntilMs, isListed }
}

function rankOf(checked: Checked): number {
  switch (checked.kind) {
    case 'use':
      return checked.use.isListed ? LISTED_RANK : 4
    case 'no-key':
      return 3
    case 'finding':
      return RANKS[checked.finding.kind]
  }
}

function withPayment(checked: Checked, payment: PaymentTag): Checked {
  return checked.kind === 'use'
    ? { ...checked, finding: { ...checked.finding, payment } }
    : { ...checked, finding: { ...checked.finding, payment } }
}

function unchecked(why: string, agentId: string | null): Checked {
  return { kind: 'finding', finding: { kind: 'unchecked', why, agentId } }
}

function notYet(agentId: string): SignatureFinding {
  return { kind: 'unchecked', why: 'no-key-yet', agentId }
}

const KEY_ID = 'keyid='
const THUMBPRINT_LENGTH = 43
/** Length of `signature-input` and of `signature-agent`. */
const NAME_LENGTH = 15
const NAMES: ReadonlySet<string> = new Set(['signature-input', 'signature-agent'])
/** Signatures that belong to other applications. */
const OF_OTHERS: ReadonlySet<string> = new Set(['other-tag', 'unsigned'])
/** Signatures that are meant for agent checks, and that cannot be followed here. */
const NOT_FOLLOWED: ReadonlySet<string> = new Set([
  'ignored-agent',
  'payment-tag',
  'ignored-key',
  'key-too-large',
])
const RANKS: Readonly<Record<SignatureFinding['kind'], number>> = {
  proven: 4,
  key: 2,
  failed: 1,
  unchecked: 0,
}
const LISTED_RANK = 5
/** Public-key operations for one request: an agent, its platform and a few intermediaries. */
const CHECKED_MAX = 4
