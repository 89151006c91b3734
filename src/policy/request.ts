import { Address } from '../wire/address-ranges.ts'
import { hostEnd, hostOf } from '../wire/host.ts'
import { isFoldedName } from '../wire/header-name.ts'
import { UNKNOWN } from '../classify/verdict/verdict.ts'
import type { Facts } from './facts.ts'
import { hasOneForm, plainForm, sentForm } from './path-form.ts'

/** What the rules of a policy ask, so that nothing else is looked for. */
export interface Asked {
  readonly host: boolean
  readonly path: boolean
  readonly address: boolean
  readonly userAgent: boolean
  /** A rule asks for the method: a header must not change it behind us. */
  readonly method: boolean
}

/**
 * A request in the form in which rules are tried on it. There is one, and each request is read into it: a rule is asked
 * thousands of times a second, and next to nothing of that should become garbage.
 */
export class PolicyRequest {
  facts: Facts = NOBODY
  /** In lower case, as it mostly was sent: nothing is copied then. */
  host: string | null = null
  /** The host without its port is up to here. */
  hostEnd = 0
  path = ''
  /** The path without its query is up to here. */
  pathEnd = 0
  isPlain = false
  /** `null` where the path has one form only. */
  plainPath: string | null = null
  /** In lower case: one copy, and every pattern is found some five times faster than in any case. */
  userAgent: string | null = null
  readonly address = new Address()
  /** For expressions, made when one asks: by folded name. */
  headers: ReadonlyMap<string, string> | null = null
  /** Something that was asked has no answer. */
  hasFailed = false
  /** What such a thing is taken for. */
  failedAs = false

  /** Of expressions; below 0: they have run out, and none has an answer any more. */
  stepsLeft = 0

  read(facts: Facts, asked: Asked): void {
    this.facts = facts
    this.stepsLeft = REQUEST_STEPS_MAX
    this.isPlain = false
    this.plainPath = null
    this.headers = null
    if (asked.host) this.#readHost(facts.host)
    if (asked.path) this.#readPath(facts.path)
    if (asked.address) this.address.read(facts.address)
    if (asked.userAgent) this.userAgent = userAgentOf(facts.rawHeaders)?.toLowerCase() ?? null
  }

  /** Whether so many steps may be taken. */
  spend(steps: number): boolean {
    if (this.stepsLeft < 0) return false
    this.stepsLeft -= steps
    return this.stepsLeft >= 0
  }

  #readHost(authority: string | null): void {
    this.host = authority
    if (authority === null) return
    const isLiteral = authority.charCodeAt(0) === OPEN_BRACKET
    this.host = isLiteral ? hostOf(authority) : authority.toLowerCase()
    this.hostEnd = isLiteral ? this.host.length : hostEnd(authority)
  }

  #readPath(target: string): void {
    this.path = target
    this.pathEnd = pathEnd(target)
    if (hasOneForm(target, this.pathEnd)) return
    const path = target.slice(0, this.pathEnd)
    this.path = sentForm(path)
    this.pathEnd = this.path.length
    const plain = plainForm(path)
    if (plain !== this.path) this.plainPath = plain
  }
}

function pathEnd(target: string): number {
  for (let at = 0; at < target.length; at++) {
    const code = target.charCodeAt(at)
    if (code === QUESTION_MARK || code === NUMBER_SIGN) return at
  }
  return target.length
}

/** One that is sent twice is one list (RFC 9110 §5.2): a second one hides nothing. */
function userAgentOf(rawHeaders: readonly string[]): string | null {
  let found: string | null = null
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (!isFoldedName(rawHeaders[i]!, USER_AGENT)) continue
    found = found === null ? rawHeaders[i + 1]! : `${found}, ${rawHeaders[i + 1]}`
  }
  return found
}

/** Of all the expressions of a policy: some ten milliseconds at most, where the head is not long. */
export const REQUEST_STEPS_MAX = 20_000
const USER_AGENT = 'user-agent'
const OPEN_BRACKET = 0x5b
const QUESTION_MARK = 0x3f
const NUMBER_SIGN = 0x23
/** Before the first request. */
const NOBODY: Facts = {
  method: '',
  host: null,
  path: '',
  address: '',
  rawHeaders: [],
  print: { connection: { ja4: null, stable: null, http2: null, noHello: null }, ja4h: null },
  verdict: UNKNOWN,
  forged: [],
}
