import type { ConnectionPrint } from '../../fingerprint/print.ts'
import type { RequestHead } from '../../wire/request-head.ts'
import { Address } from '../../wire/address-ranges.ts'
import { mixed } from '../../wire/network-hash.ts'
import { type AskedFor, askedFor } from './asked.ts'
import { EvidenceSet } from '../known/evidence.ts'
import { LastVerdict } from './last-verdict.ts'
import type { Reading } from './reading.ts'
import type { Shown } from './shown.ts'
import type { Software } from '../known/software.ts'
import type { Stack } from '../known/stack.ts'
import { hashOf, Tally } from './tally.ts'
import type { Traffic } from './traffic.ts'
import type { Claim } from '../known/user-agent.ts'

/**
 * What a client has done so far. What it once claimed on a connection applies to all later requests on it.
 * Some behavior shows only over several requests, on this connection and on others.
 */
export class Conduct {
  /** The evidence from this connection. */
  readonly marks = new EvidenceSet()
  /** The agent that an earlier request named. */
  agent: Software | null = null
  #last: LastVerdict | null = null
  readonly #traffic: Traffic | null
  readonly #network: string
  readonly #addressText: string
  #address: Address | null = null
  #networkHash = 0
  /** Counts of this client, including this connection; `null` before the first request. */
  #tally: Tally | null
  /** Counts of all clients with the same hello, if no software is known to have it. */
  #ofHello: Tally | null = null
  #claim: Claim | null = null
  #program = 0
  #requests = 0
  /** A page that is loaded again is one page. */
  #pages = 0
  #lastPage = ''
  #hasParts = false

  /**
   * `network`: the client's `address`, or the /64 of an IPv6 address; '' if unknown. Without a Traffic, only
   * this connection is known, and `tally`, which is empty, counts it.
   */
  constructor(traffic: Traffic | null = null, network = '', address = '', tally: Tally | null = null) {
    this.#tally = tally
    this.#traffic = traffic
    this.#network = network
    this.#addressText = address
  }

  get last(): LastVerdict {
    this.#last ??= new LastVerdict()
    return this.#last
  }

  /** As it was written. */
  get addressText(): string {
    return this.#addressText
  }

  /** The client's address, parsed on first use. */
  get address(): Address {
    if (this.#address !== null) return this.#address
    const address = new Address()
    address.read(this.#addressText)
    this.#address = address
    return address
  }

  /** Called for each request, in order. Returns what it is for. */
  note(
    head: RequestHead,
    reading: Reading,
    { claim, stack }: Pick<Shown, 'claim' | 'stack'>,
    print: ConnectionPrint,
    nowMs: number,
  ): AskedFor {
    const tally = this.#tally ?? this.#begin(claim, print, stack)
    const asked = askedFor(head, reading, claim.kind === 'browser')
    if (asked === 'robots' && this.#requests === 0) this.marks.add('robots-first')
    if (asked === 'part') this.marks.add('loads-parts')
    if (asked === 'part' || asked === 'aside') this.#hasParts = true
    if (asked === 'page' && head.target !== this.#lastPage) {
      this.#pages++
      this.#lastPage = head.target
    }
    this.#requests++
    tally.note(asked, head.target, reading.referer, this.#networkHash, nowMs)
    this.#ofHello?.note(asked, head.target, reading.referer, this.#networkHash, nowMs)
    return asked
  }

  /** Hash of the claimed browser with its main version, and of the fingerprints of the connection. */
  programOf(claim: Claim, { stable, ja4, http2 }: ConnectionPrint): number {
    if (claim === this.#claim) return this.#program
    const texts = [stable ?? ja4 ?? '', http2 ?? '', claim.software?.id ?? '']
    let hash = claim.version
    for (const text of texts) hash = mixed(hash ^ hashOf(text, text.length))
    this.#claim = claim
    this.#program = hash
    return hash
  }

  /**
   * Adds what the client did lately to `marks`. A client that may be a person is not judged by other clients
   * behind the same address. Only pages opened on this connection count, and only if page resources are
   * loaded neither here nor on the client's other connections.
   */
  markTraffic(marks: EvidenceSet, mayBePerson: boolean): void {
    const tally = this.#tally!
    if (!mayBePerson) marks.addCommon(tally.marks, tally.isBare ? ALL : wholePages(tally, marks))
    else if (this.#pages >= OWN_PAGES_MIN && !this.#hasParts && !tally.hasParts)
      marks.addCommon(tally.marks, OF_PERSONS)
    const ofHello = this.#ofHello
    if (ofHello !== null && !this.#hasParts && ofHello.isFromMany && ofHello.isBare)
      marks.add('asks-from-many')
  }

  #begin(claim: Claim, print: ConnectionPrint, stack: Stack): Tally {
    this.#tally = this.#traffic === null ? new Tally() : this.#join(this.#traffic, claim, print, stack)
    return this.#tally
  }

  #join(traffic: Traffic, { software, kind }: Claim, { stable, ja4 }: ConnectionPrint, stack: Stack): Tally {
    const hello = stable ?? ja4
    this.#networkHash = hashOf(this.#network, this.#network.length)
    const isStrange = stack.kind === 'unknown' && !stack.isKnown
    if (hello !== null && isStrange) this.#ofHello = traffic.ofHello(hello)
    return traffic.of(this.#network, hello, software?.id ?? kind)
  }
}

function wholePages({ hasParts }: Tally, marks: EvidenceSet): EvidenceSet {
  return hasParts && marks.has('names-tool') ? OF_COPIES : OF_WHOLE_PAGES
}

const ALL = EvidenceSet.of(['robots-first', 'crawls', 'asks-sitemap', 'asks-broadly', 'asks-fast'])
/** For clients that also load page resources: they may open any number of pages. */
const OF_WHOLE_PAGES = EvidenceSet.of(['robots-first', 'crawls', 'asks-sitemap'])
/** A tool that follows links and loads page resources copies a site for its user. Crawlers read pages. */
const OF_COPIES = EvidenceSet.of(['robots-first', 'asks-sitemap'])
/** People follow one link after another and open sitemaps, so only these two count for them. */
const OF_PERSONS = EvidenceSet.of(['asks-broadly', 'asks-fast'])
/** The first page of a connection is requested before the resources of that page. */
const OWN_PAGES_MIN = 2
