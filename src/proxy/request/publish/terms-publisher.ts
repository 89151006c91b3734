import { LRUCache } from 'lru-cache'
import type { App } from '../../../apps/app.ts'
import type { Snapshot } from '../../../plane/snapshot.ts'
import type { Decision } from '../../../policy/decide.ts'
import { Glob } from '../../../policy/glob.ts'
import { sentForm } from '../../../policy/path-form.ts'
import { allRules, type Policy } from '../../../policy/policy.ts'
import { hostGroup } from '../../../terms/host-group.ts'
import { type PublishedTerms, publishedTerms } from '../../../terms/published-terms.ts'
import { robotsForm } from '../../../terms/robots-form.ts'
import { RobotsTxt } from '../../../terms/robots-txt.ts'
import { rslForm } from '../../../terms/rsl-form.ts'
import { contentUsage } from '../../../terms/usage-form.ts'
import { hostOf } from '../../../wire/host.ts'
import type { AppHeaders } from '../../connection/app-headers.ts'
import type { Exchange } from '../../connection/exchange.ts'
import type { ReceivedHead } from '../../connection/received-head.ts'
import { WrappedExchange } from './wrapped-exchange.ts'

export interface PublishSettings {
  readonly hasRobots: boolean
  readonly hasUsage: boolean
  readonly hasSignals: boolean
  /** `null`: no RSL document. */
  readonly rslPath: string | null
}

/** Whose terms are published: the site that a request is for, and what is in force there. */
export interface TermsSite {
  readonly snapshot: Snapshot
  readonly app: App
  readonly authority: string
  readonly isTls: boolean
  readonly nowMs: number
}

/** Answers crawlers that ask for the policy, and adds it to the answers of the app. */
export class TermsPublisher {
  readonly #settings: PublishSettings
  /** By app and host. */
  readonly #sites = new LRUCache<string, SiteTerms>({ max: SITES_MAX })

  private constructor(settings: PublishSettings) {
    this.#settings = settings
  }

  /** `null`: nothing is published. */
  static for(settings: PublishSettings): TermsPublisher | null {
    const { hasRobots, hasUsage, rslPath } = settings
    return hasRobots || hasUsage || rslPath !== null ? new TermsPublisher(settings) : null
  }

  /** The decision on a request for a published form: every client may read it. `null`: the policy decides. */
  decisionFor({ method, target }: Pick<ReceivedHead, 'method' | 'target'>): Decision | null {
    if (method !== 'GET' && method !== 'HEAD') return null
    const { hasRobots, rslPath } = this.#settings
    if (hasRobots && isAt(target, ROBOTS_PATH)) return READS_ROBOTS
    return rslPath !== null && isAt(target, rslPath) ? READS_LICENSE : null
  }

  /** The RSL document, if the request is for it. */
  license(decision: Decision, site: TermsSite): string | null {
    return decision === READS_LICENSE ? rslForm(this.#termsOf(site).terms) : null
  }

  /** The exchange through which the app answers: it adds what is published. */
  exchangeFor(exchange: Exchange, decision: Decision, site: TermsSite): Exchange {
    if (decision === READS_ROBOTS) return new RobotsExchange(exchange, (own) => this.#robots(site, own))
    if (!this.#settings.hasUsage) return exchange
    const usage = this.#usageFor(site, exchange.head.target)
    return usage === null ? exchange : new UsageExchange(exchange, usage)
  }

  /** The app is asked for the whole robots.txt, as it is. */
  headersFor({ own, introduction }: AppHeaders, decision: Decision): AppHeaders {
    if (decision !== READS_ROBOTS) return { own, introduction }
    const kept = own.flatMap((text, i) => (i % 2 === 0 && !OF_A_PART.test(text) ? [text, own[i + 1]!] : NONE))
    return { own: kept, introduction }
  }

  #robots(site: TermsSite, own: string): string {
    const known = this.#termsOf(site)
    if (known.robots?.own === own) return known.robots.text
    const { hasUsage, hasSignals, rslPath } = this.#settings
    const scheme = site.isTls ? 'https' : 'http'
    const text = robotsForm(known.terms, {
      hasUsage,
      hasSignals,
      license: rslPath === null ? null : `${scheme}://${site.authority}${rslPath}`,
      own: own === '' ? null : RobotsTxt.parse(Buffer.from(own, 'latin1')),
    })
    known.robots = { own, text }
    return text
  }

  #usageFor(site: TermsSite, target: string): string | null {
    const { terms, globs } = this.#termsOf(site)
    const query = target.indexOf('?')
    const path = sentForm(query === -1 ? target : target.slice(0, query))
    const whole = query === -1 ? path : path + target.slice(query)
    return contentUsage(terms, (pattern) => globs.get(pattern)!.matches(whole))
  }

  #termsOf({ snapshot, app, authority, nowMs }: TermsSite): SiteTerms {
    const policy = snapshot.appPolicies.get(app.id) ?? snapshot.policy
    const { knowledge } = snapshot
    const host = hostOf(authority)
    const key = `${app.id} ${hostGroup(policy, host)}`
    const known = this.#sites.get(key)
    if (known?.policy === policy && known.knowledge === knowledge && nowMs < known.untilMs) return known
    const terms = publishedTerms(policy, knowledge ?? NOTHING_KNOWN, host, nowMs)
    const globs = new Map(terms.uses.map(({ pattern }) => [pattern, Glob.parse(pattern, 'exact')]))
    const made: SiteTerms = {
      policy,
      knowledge,
      terms,
      globs,
      untilMs: nextExpiry(policy, nowMs),
      robots: null,
    }
    this.#sites.set(key, made)
    return made
  }
}

interface SiteTerms {
  readonly policy: Policy
  readonly knowledge: Snapshot['knowledge']
  readonly terms: PublishedTerms
  /** The patterns of `uses`. */
  readonly globs: ReadonlyMap<string, Glob>
  /** When a rule of the policy expires. */
  readonly untilMs: number
  /** The robots.txt that was made last, and the app's own that it was made with. */
  robots: { readonly own: string; readonly text: string } | null
}

/** Collects the app's robots.txt, and answers with one that has the policy, too. */
class RobotsExchange extends WrappedExchange {
  readonly #textFor: (own: string) => string
  readonly #pieces: Uint8Array[] = []
  #length = 0
  /** `through`: the client gets the app's answer as it is. */
  #own: 'none' | 'some' | 'through' = 'none'

  constructor(inner: Exchange, textFor: (own: string) => string) {
    super(inner)
    this.#textFor = textFor
  }

  override answer(...answer: Parameters<Exchange['answer']>): void {
    const [status, headers] = answer
    // RFC 9309 §2.3.1: a missing file allows everything; an error or a redirect says nothing about the file.
    const isMissing = status >= 400 && status < 500 && status !== 429
    if (isMissing) this.#own = 'none'
    else if (status === 200 && !isEncoded(headers)) this.#own = 'some'
    else this.#own = 'through'
    if (this.#own === 'through') super.answer(...answer)
  }

  override write(chunk: Uint8Array): boolean {
    if (this.#own === 'through') return super.write(chunk)
    if (this.#own === 'some' && this.#length < BYTES_MAX) {
      this.#pieces.push(Buffer.from(chunk))
      this.#length += chunk.length
    }
    return true
  }

  override end(trailers: readonly string[]): void {
    if (this.#own === 'through') return super.end(trailers)
    // Without the app's body, the length of the answer is unknown.
    if (this.inner.head.method === 'HEAD') {
      super.answer(200, HEADERS, 0)
      return super.end(NONE)
    }
    const own = Buffer.concat(this.#pieces).toString('latin1')
    const body = Buffer.from(this.#textFor(own), 'latin1')
    super.answer(200, [...HEADERS, 'Content-Length', String(body.length)], body.length)
    super.write(body)
    super.end(NONE)
  }
}

/** Adds `Content-Usage` to an answer that has none. */
class UsageExchange extends WrappedExchange {
  readonly #usage: string

  constructor(inner: Exchange, usage: string) {
    super(inner)
    this.#usage = usage
  }

  override answer(...[status, headers, ...others]: Parameters<Exchange['answer']>): void {
    const hasOwn = headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-usage')
    super.answer(status, hasOwn ? headers : [...headers, 'Content-Usage', this.#usage], ...others)
  }
}

function isAt(target: string, path: string): boolean {
  return target.startsWith(path) && (target.length === path.length || target[path.length] === '?')
}

function isEncoded(headers: readonly string[]): boolean {
  return headers.some(
    (name, i) => i % 2 === 0 && name.toLowerCase() === 'content-encoding' && headers[i + 1] !== 'identity',
  )
}

function nextExpiry(policy: Policy, nowMs: number): number {
  const times = allRules(policy).map(({ expiresMs }) => expiresMs)
  return Math.min(...times.filter((each) => each > nowMs), Number.POSITIVE_INFINITY)
}

const ROBOTS_PATH = '/robots.txt'
const PASS = { kind: 'pass' } as const
const READS_ROBOTS: Decision = { action: PASS, rule: 'publish.robots', layer: null, wouldHave: null }
const READS_LICENSE: Decision = { action: PASS, rule: 'publish.rsl_path', layer: null, wouldHave: null }
const HEADERS = ['Content-Type', 'text/plain; charset=utf-8', 'Cache-Control', 'max-age=3600']
const OF_A_PART = /^(?:accept-encoding|range|if-.*)$/i
const NOTHING_KNOWN = { list: [], names: null }
const NONE: readonly string[] = []
const SITES_MAX = 64
/** What crawlers read of a robots.txt. */
const BYTES_MAX = 512_000
