import { LateCache } from '../../shared/late-cache.ts'
import type { Knowledge } from '../../classify/known/knowledge.ts'
import type { PlaceFinding, Places, Proofs, SignatureFinding } from '../../classify/verdict/proof.ts'
import type { Verification } from '../../classify/known/software.ts'
import { FailureBudget } from '../../identity/verify/failure-budget.ts'
import type { InquiryResult, Inquiry, Investigator } from '../../identity/keys/inquiry.ts'
import { KeyBook } from '../../identity/keys/key-book.ts'
import { PlaceBook } from '../../identity/address/place-book.ts'
import {
  type SentRequest,
  type Checked,
  isSigned,
  SignatureCheck,
} from '../../identity/verify/signature-check.ts'
import type { Connection } from '../connection/connection.ts'
import { clientAddress } from '../connection/peer-address.ts'
import { type AddressSet, clientNetwork } from '../../wire/ip-address.ts'
import { type RateLimit, RateLimiter } from './rate-limiter.ts'
import type { HeaderRules } from '../connection/header-rules.ts'
import type { ReceivedHead } from '../connection/received-head.ts'
import { receiveHeaders } from '../connection/request-headers.ts'
import type { ServedHosts } from '../connection/served-hosts.ts'

export interface ProverSettings {
  /** Key documents may be at private addresses and over plain http. For tests. */
  readonly allowPrivate: boolean
  readonly needsNonce: boolean
  readonly readsSignatureKey: boolean
  readonly isPlaceAsked: boolean
  /** Whether there is a file of agent networks. */
  readonly areNetworksKnown: boolean
  readonly isSignatureChecked: boolean
  /** Whether keys of unlisted agents may be fetched. */
  readonly areStrangersAsked: boolean
  /** Agents from the settings, besides those of the signatures. */
  readonly agents: readonly string[]
}

export interface ProverParts {
  readonly investigator: Investigator
  readonly hosts: ServedHosts
  readonly trusted: AddressSet
  /** Decides which headers of a trusted proxy are believed. */
  readonly rules: HeaderRules
  readonly clock: { readonly nowMs: number }
  readonly metrics: { signatureFound(finding: SignatureFinding): void }
}

/** Proofs that are not known yet. */
export interface PendingProofs {
  /** Never rejects. */
  readonly proofs: Promise<Proofs>
  /** Called if the client disconnects: ends the wait as soon as possible. */
  letGo(): void
}

/**
 * Finds proofs of the sender of a request: signatures and address checks. Unknown facts are looked up elsewhere,
 * for the next request.
 */
export class Prover implements Places {
  readonly #settings: ProverSettings
  readonly #parts: ProverParts
  readonly #keys: KeyBook
  readonly #known = new PlaceBook()
  readonly #check: SignatureCheck
  readonly #budget = new FailureBudget()
  /** The proofs of all unsigned requests. */
  readonly #unsigned: Proofs
  /** Recent inquiries. */
  readonly #asked = new LateCache<true>({ max: ASKED_MAX, ttl: ASKED_MS })
  readonly #waiting = new Map<string, number>()
  readonly #asks = new RateLimiter(ASKS_OF.length)
  readonly #refreshing: NodeJS.Timeout
  #allWaiting = 0
  #isListening = false
  #beginning: NodeJS.Timeout | null = null
  #signers: ReadonlySet<string> = new Set()

  constructor(settings: ProverSettings, parts: ProverParts) {
    this.#settings = settings
    this.#parts = parts
    this.#keys = new KeyBook(settings.areStrangersAsked)
    this.#check = new SignatureCheck(settings, this.#keys, this.#budget)
    this.#unsigned = { signature: null, places: settings.isPlaceAsked ? this : null }
    this.#refreshing = setInterval(() => this.#refresh(), REFRESH_MS).unref()
  }

  get isSignatureChecked(): boolean {
    return this.#settings.isSignatureChecked
  }

  get waiting(): number {
    return this.#allWaiting
  }

  /** Sets the agents whose keys are fetched in advance. */
  use(knowledge: Knowledge | null): void {
    this.#signers = new Set([...this.#settings.agents, ...(knowledge?.identities.signers ?? [])])
    this.#keys.list(this.#signers)
    // Listens only now, because the key book needs the list of signers first.
    if (!this.#isListening) this.#parts.investigator.onFinding((finding) => this.#take(finding))
    // The start delays the first fetch, which loads the fetching code, in favour of requests.
    if (this.#isListening) this.#refresh()
    else this.#beginning = setTimeout(() => this.#refresh(), START_MS).unref()
    this.#isListening = true
  }

  /** Immediate for unsigned requests. `waitMs`: how long a request may wait for the signer's key. */
  prove(
    connection: Connection,
    head: ReceivedHead,
    authority: string | null,
    waitMs: number,
  ): Proofs | PendingProofs {
    if (!this.#settings.isSignatureChecked || !isSigned(head.rawHeaders)) return this.#unsigned
    const asked = this.#askedBy(connection, head, authority)
    const checked = this.#check.check(asked, this.#parts.clock.nowMs)
    if (checked === null) return this.#unsigned
    switch (checked.kind) {
      case 'finding':
        return this.#found(checked.finding)
      case 'use':
        return { proofs: this.#claimed(asked, checked), letGo: STAYS }
      case 'no-key':
        return this.#withoutKey(asked, checked, waitMs)
    }
  }

  of(address: string, { reverseDns }: Pick<Verification, 'reverseDns'>): PlaceFinding | null {
    // An agent that is verified by network alone needs the file of networks.
    if (reverseDns.length === 0 && !this.#settings.areNetworksKnown) return null
    const known = this.#known.of(address, this.#parts.clock.nowMs)
    if (known === null) this.#ask({ kind: 'place', address }, address, 'place')
    return known
  }

  close(): void {
    clearInterval(this.#refreshing)
    if (this.#beginning !== null) clearTimeout(this.#beginning)
  }

  #take(finding: InquiryResult): void {
    if (finding.kind === 'keys') this.#keys.take(finding)
    else this.#known.take(finding)
  }

  /** Fetches the keys of listed agents before they expire. */
  #refresh(): void {
    if (!this.#settings.isSignatureChecked) return
    const soonMs = this.#parts.clock.nowMs + 2 * REFRESH_MS
    for (const agentId of this.#signers) {
      const known = this.#keys.of(agentId, soonMs)
      if (known !== null && known.freshUntilMs > soonMs) continue
      this.#parts.investigator.ask({ kind: 'keys', agentId, thumbprint: null, isListed: true })
    }
  }

  #askedBy(connection: Connection, head: ReceivedHead, authority: string | null): SentRequest {
    const { rules } = this.#parts
    const hop = connection.isTrusted ? receiveHeaders(rules, connection, head, null, false).hop : null
    const address = hop === null ? connection.address : clientAddress(connection, hop, this.#parts.trusted)
    const isSecure =
      (hop?.forwardedProto ?? null) === null ? connection.isTls : hop!.forwardedProto === 'https'
    const { target, rawHeaders } = head
    return {
      method: sentMethod(head),
      target,
      rawHeaders,
      address,
      base: `${isSecure ? 'https' : 'http'}://${authority ?? ''}`,
      host: authority === null ? 'other' : this.#parts.hosts.ownerOf(authority, connection),
      network: clientNetwork(address),
    }
  }

  async #claimed(asked: SentRequest, checked: Checked & { readonly kind: 'use' }): Promise<Proofs> {
    const { use, isStale, keysOf } = checked
    const { isListed } = use
    // The key may have been revoked.
    if (isStale)
      this.#ask(
        { kind: 'keys', agentId: keysOf, thumbprint: null, isListed },
        keysOf,
        isListed ? 'listed' : 'stranger',
      )
    const isTaken = await this.#parts.investigator.claim(use)
    return this.#found(this.#check.settle(checked, asked, isTaken, this.#parts.clock.nowMs))
  }

  #withoutKey(
    asked: SentRequest,
    { agentId, thumbprint, finding }: Checked & { readonly kind: 'no-key' },
    waitMs: number,
  ): Proofs | PendingProofs {
    const isListed = this.#keys.isListed(agentId)
    const key = `${agentId} ${thumbprint}`
    const isNew = this.#ask(
      { kind: 'keys', agentId, thumbprint, isListed },
      key,
      isListed ? 'listed' : 'stranger',
    )
    // A client that names many unknown agents causes a fetch for each, so each counts against its budget.
    if (isNew && !isListed) this.#budget.failed(asked.network, null, this.#parts.clock.nowMs)
    const others = this.#waiting.get(asked.network) ?? 0
    if (waitMs === 0 || this.#allWaiting >= WAITING_MAX || others >= WAITING_PER_NETWORK_MAX)
      return this.#found(finding)
    return this.#afterKey(asked, agentId, finding, waitMs)
  }

  /** Continues when the keys arrive or the time is up. A request waits only once. */
  #afterKey(asked: SentRequest, agentId: string, otherwise: SignatureFinding, waitMs: number): PendingProofs {
    const { promise, resolve } = Promise.withResolvers<'come' | 'left'>()
    const timer = setTimeout(resolve, waitMs, 'come')
    const callOff = this.#keys.wait(agentId, () => resolve('come'))
    this.#count(asked.network, 1)
    const proofs = promise.then((why) => {
      this.#count(asked.network, -1)
      clearTimeout(timer)
      callOff()
      // The signature of a client that has disconnected is not used up.
      const checked = why === 'left' ? null : this.#check.check(asked, this.#parts.clock.nowMs)
      if (checked?.kind === 'use') return this.#claimed(asked, checked)
      return this.#found(checked?.finding ?? otherwise)
    })
    return { proofs, letGo: () => resolve('left') }
  }

  #count(network: string, change: 1 | -1): void {
    const count = (this.#waiting.get(network) ?? 0) + change
    this.#allWaiting += change
    if (count === 0) this.#waiting.delete(network)
    else this.#waiting.set(network, count)
  }

  /** `false`: the same inquiry was made recently, or there are too many. */
  #ask(inquiry: Inquiry, key: string, of: (typeof ASKS_OF)[number]): boolean {
    if (this.#asked.has(key) || this.#asks.take(of, ASKS, this.#parts.clock.nowMs) > 0) return false
    this.#asked.set(key, true)
    this.#parts.investigator.ask(inquiry)
    return true
  }

  #found(signature: SignatureFinding): Proofs {
    this.#parts.metrics.signatureFound(signature)
    return { signature, places: this.#unsigned.places }
  }
}

/** The method that the client signed: CONNECT for a WebSocket over HTTP/2, which is judged as a GET. */
function sentMethod({ method, rawHeaders }: ReceivedHead): string {
  const at = rawHeaders.indexOf(':method')
  return at === -1 || at % 2 === 1 ? method : rawHeaders[at + 1]!
}

/** Does nothing: a claim is answered soon enough. */
const STAYS = () => undefined
const START_MS = 500
const REFRESH_MS = 30_000
/** After this time a failed inquiry may be repeated. */
const ASKED_MS = 1_000
const ASKED_MAX = 4_096
/** Separate limits, so that made-up agent names do not use up the limit of listed ones. */
const ASKS_OF = ['listed', 'stranger', 'place'] as const
/** Each is a message to another process. */
const ASKS: RateLimit = { requests: 200, windowMs: 1_000, burst: 200 }
/** Each waiting signature holds a request. Beyond the limit, the key is there for the next request. */
const WAITING_MAX = 1_000
const WAITING_PER_NETWORK_MAX = 50
