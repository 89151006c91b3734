import { Address } from '../wire/address-ranges.ts'
import { hostEnd, hostOf } from '../wire/host.ts'
import { isFoldedName } from '../wire/header-name.ts'
import { UNKNOWN } from '../classify/verdict/verdict.ts'
import { type ExpressionFacts, expressionFacts } from './expression-facts.ts'
import type { Facts } from './facts.ts'
import { emptyHashes, hashStarts, type PathStarts } from './compact/path-starts.ts'
import { hasOneForm, plainForm, sentForm } from './path-form.ts'

/** The facts that the rules of a policy use. Other facts are not computed. */
export interface NeededFacts {
  readonly host: boolean
  readonly path: boolean
  readonly address: boolean
  readonly userAgent: boolean
  /** A rule tests the method, so a method override header must not change it after the decision. */
  readonly method: boolean
  /** A rule tests the purpose of the agent, of which it can have several. */
  readonly purpose: boolean
  /** A rule asks for the call of an MCP server, which is in the body. */
  readonly mcp: boolean
}

/**
 * A request in the form that rules test. One instance is reused for all requests: rules run thousands of
 * times a second and should produce almost no garbage.
 */
export class PolicyRequest {
  facts: Facts = NO_FACTS
  /** In lower case. Most clients send it so, and then nothing is copied. */
  host: string | null = null
  /** End of the host without its port. */
  hostEnd = 0
  path = ''
  /** End of the path without its query. */
  pathEnd = 0
  isPlain = false
  /** `null` if the path has only one form. */
  plainPath: string | null = null
  /** See `hashStarts`. For the path of this request only after `startsFor`. */
  readonly starts = emptyHashes()
  #isHashed = false
  /** In lower case: it costs one copy, and matching is about five times faster than ignoring case. */
  userAgent: string | null = null
  readonly address = new Address()
  /** The facts as expressions read them. */
  readonly shown: ExpressionFacts = expressionFacts(this)
  /** By folded name, for expressions. Created when an expression first uses it. */
  headers: ReadonlyMap<string, string> | null = null
  /** The only purpose of the agent that conditions see. `null`: they see all. Expressions always see all. */
  purpose: string | null = null
  /** An expression had no answer. */
  hasFailed = false
  /** The result that an expression without an answer is given. */
  failedAs = false

  /** Steps left for expressions. Below 0: no further expression has an answer. */
  stepsLeft = 0
  /** How many times a rule was tried whose expression had no answer. */
  failures = 0
  /** How many requests have used up the step limit of expressions. */
  overruns = 0

  read(facts: Facts, asked: NeededFacts): void {
    this.facts = facts
    this.stepsLeft = REQUEST_STEPS_MAX
    this.isPlain = false
    this.plainPath = null
    this.headers = null
    this.#isHashed = false
    if (asked.host) this.#readHost(facts.host)
    if (asked.path) this.#readPath(facts.path)
    if (asked.address) this.address.read(facts.address)
    if (asked.userAgent) this.userAgent = userAgentOf(facts.rawHeaders)?.toLowerCase() ?? null
  }

  /** Only the method, host and path. */
  readTarget(target: Pick<Facts, 'method' | 'host' | 'path'>, { host, path }: NeededFacts): void {
    const { method } = target
    this.read(
      { ...NO_FACTS, method, host: target.host, path: target.path },
      { ...NOTHING_NEEDED, host, path },
    )
  }

  /** The starts that exclude rules for this request. A path with two forms excludes none. */
  startsFor(starts: PathStarts | null): PathStarts | null {
    if (starts === null || this.plainPath !== null) return null
    if (!this.#isHashed) hashStarts(this.path, this.pathEnd, this.starts)
    this.#isHashed = true
    return starts
  }

  /** Takes steps from the limit; `false` if too few are left. */
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

/** A header that is sent twice is one list (RFC 9110 §5.2), so a second one hides nothing. */
function userAgentOf(rawHeaders: readonly string[]): string | null {
  let found: string | null = null
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (!isFoldedName(rawHeaders[i]!, USER_AGENT)) continue
    found = found === null ? rawHeaders[i + 1]! : `${found}, ${rawHeaders[i + 1]}`
  }
  return found
}

/** For all expressions of a policy: about ten milliseconds at most, if the head is not long. */
export const REQUEST_STEPS_MAX = 20_000
const USER_AGENT = 'user-agent'
const OPEN_BRACKET = 0x5b
const QUESTION_MARK = 0x3f
const NUMBER_SIGN = 0x23
const NOTHING_NEEDED: NeededFacts = {
  ...{ host: false, path: false, address: false, userAgent: false, method: false, purpose: false },
  mcp: false,
}
/** The facts before the first request. */
const NO_FACTS: Facts = {
  method: '',
  host: null,
  path: '',
  address: '',
  rawHeaders: [],
  print: { connection: { ja4: null, stable: null, http2: null, noHello: null }, ja4h: null },
  verdict: UNKNOWN,
  forged: [],
}
