import { isOurHeader } from '../classify/verdict/our-headers.ts'
import { PROOF_METHODS, type ProofMethod } from '../classify/verdict/proof.ts'
import { CATEGORIES } from '../classify/known/software.ts'
import type { SoftwareNames } from '../classify/known/software-names.ts'
import { didYouMean } from '../shared/did-you-mean.ts'
import { AddressRanges, parseAddressRange } from '../wire/address-ranges.ts'
import { asciiHint, hostOf } from '../wire/host.ts'
import { isRegisteredMethod } from '../wire/methods.ts'
import { foldHeaderName, isFoldedName } from '../wire/header-name.ts'
import { asBytes, Glob, matchesAny } from './glob.ts'
import { readExpression } from './expression.ts'
import { resolvedId, type WrittenId } from './written-id.ts'
import { vocabularyProblem, VOCABULARIES, VERDICT_KINDS as VERDICTS } from './vocabulary.ts'
import { decoded, sentForm } from './path-form.ts'
import { type DocumentProblem, type Place, shown } from '../shared/problem.ts'
import type { PolicyRequest } from './request.ts'

/** One compiled test. It returns whether a request meets a condition. */
export type Test = (request: PolicyRequest) => boolean

/** What the conditions of a policy need, collected while they are compiled. */
export interface Needs {
  /** The names of the conditions and facts that the rules use. */
  readonly asked: Set<string>
  /** The steps of all expressions, each evaluated once. */
  steps: number
  /** Maps ids, names and aliases to ids. `null`: not known yet, so each name stands for itself. */
  readonly names: SoftwareNames | null
  /** Every id as written in the policy. */
  readonly ids: WrittenId[]
  /** Collects unknown words, which then never hold. `null`: they are refused. */
  readonly unknownWords: DocumentProblem[] | null
}

/** A condition that can stand under `when`. */
export interface Condition {
  /** For the manual. */
  readonly takes: string
  readonly about: string
  /** `null`: the condition was refused, and its place has the problem. */
  compile(place: Place, needs: Needs): Test | null
}

/** A condition of a rule, compiled. */
export interface CompiledCondition {
  readonly name: string
  /** As written in the policy. */
  readonly takes: unknown
  readonly test: Test
}

/** Compiles all conditions of a rule, cheapest first. Nothing is compiled later. Fills in `needs`. */
export function compileConditions(
  place: Place,
  needs: Needs,
  known: readonly string[] = CONDITION_NAMES,
): readonly CompiledCondition[] {
  const members = typeof place.value === 'string' ? new Map([['expression', place]]) : place.members(known)
  const compiled: CompiledCondition[] = []
  for (const [name, condition] of CONDITIONS) {
    const member = members.get(name)
    // A condition that is not allowed here is not compiled: one `not` can contain thousands.
    if (member === undefined || !known.includes(name)) continue
    needs.asked.add(name)
    const test = condition.compile(member, needs)
    if (test !== null) compiled.push({ name, takes: member.value, test })
  }
  return compiled
}

export function hold(tests: readonly Test[], request: PolicyRequest): boolean {
  for (let i = 0; i < tests.length; i++) if (!tests[i]!(request)) return false
  return true
}

function verdict(place: Place): Test | null {
  const kinds = all(place, (item) => item.choice(VERDICTS))
  return kinds && ((request) => kinds.includes(request.facts.verdict.kind))
}

function agent(place: Place, needs: Needs): Test | null {
  const ids = all(place, (item) => idIn(item, 'agent', needs))
  if (ids === null) return null
  const set = new Set(ids)
  return ({ facts }) => facts.verdict.agent !== null && set.has(facts.verdict.agent.id)
}

function category(place: Place, needs: Needs): Test | null {
  const categories = all(place, (item) => {
    const name = item.text('the category of an agent')
    const problem = name === null ? null : vocabularyProblem('category', name)
    return problem === null ? name : unknownWord(item, needs, problem, name)
  })
  if (categories === null) return null
  const set = new Set(categories)
  return ({ facts }) => facts.verdict.agent !== null && set.has(facts.verdict.agent.category)
}

function software(place: Place, needs: Needs): Test | null {
  const ids = all(place, (item) => idIn(item, 'software', needs))
  if (ids === null) return null
  const set = new Set(ids)
  return ({ facts }) => facts.verdict.software !== null && set.has(facts.verdict.software.id)
}

function evidence(place: Place, needs: Needs): Test | null {
  const globs = all(place, (item) => evidenceGlob(item, needs))
  return globs && (({ facts }) => facts.verdict.evidence.some(({ kind }) => matchesAny(globs, kind)))
}

function confidenceMin(place: Place): Test | null {
  const { value } = place
  if (typeof value !== 'number' || !(value >= 0 && value <= 1))
    return place.refuse(`is ${shown(value)}; expected a number from 0 to 1`)
  return (request) => request.facts.verdict.confidence >= value
}

function verified(place: Place): Test | null {
  const { value } = place
  if (typeof value === 'boolean') return ({ facts }) => (facts.verdict.proof !== null) === value
  if (!Array.isArray(value) && !PROOF_METHODS.includes(value as ProofMethod))
    return place.refuse(
      `is ${shown(value)}; expected true, false, or any of ${PROOF_METHODS.join(', ')}${nearestIn(PROOF_METHODS, value)}`,
    )
  const methods = all(place, (item) => item.choice(PROOF_METHODS))
  return (
    methods && (({ facts: { verdict } }) => verdict.proof !== null && methods.includes(verdict.proof.method))
  )
}

function listed(place: Place): Test | null {
  const wanted = place.boolean()
  return wanted === null ? null : ({ facts }) => (facts.verdict.agent !== null) === wanted
}

function signer(place: Place): Test | null {
  const globs = all(place, (item) => glob(item, 'the URL of a signer, like https://agent.example', 'exact'))
  return (
    globs &&
    (({ facts }) => {
      const { proof } = facts.verdict
      return proof !== null && proof.method === 'web-bot-auth' && matchesAny(globs, proof.agent)
    })
  )
}

function forged(place: Place): Test | null {
  const wanted = place.boolean()
  return wanted === null ? null : ({ facts }) => facts.forged.length > 0 === wanted
}

function hello(place: Place): Test | null {
  const kinds = all(place, (item) => item.choice(NO_HELLO))
  if (kinds === null) return null
  return ({ facts }) => {
    const { noHello } = facts.print.connection
    return noHello !== null && kinds.includes(noHello)
  }
}

function ja4(place: Place): Test | null {
  const is = fingerprints(place, '_', [10, 12, 12], 't13d1516h2_8daaf6152771_e5627efa2ab1')
  return is && (({ facts }) => is(facts.print.connection.ja4))
}

function stable(place: Place): Test | null {
  const is = fingerprints(place, '-', [3, 10, 12, 12], 'gs1-t13d1514h2-8daaf6152771-de4a06bb82e3')
  return is && (({ facts }) => is(facts.print.connection.stable))
}

function ja4h(place: Place): Test | null {
  const is = fingerprints(place, '_', [12, 12, 12, 12], 'ge11nn05enus_9ed1ff1f7b03_*_*')
  return is && (({ facts }) => is(facts.print.ja4h))
}

function http2(place: Place): Test | null {
  const globs = all(place, (item) => glob(item, 'an HTTP/2 fingerprint', 'exact'))
  if (globs === null) return null
  return ({ facts }) => {
    const { http2: print } = facts.print.connection
    return print !== null && matchesAny(globs, print)
  }
}

function method(place: Place): Test | null {
  const methods = all(place, (item) => {
    const name = item.text('a method, like GET')
    if (name === null || METHOD.test(name)) return name
    return item.refuse(`is ${shown(name)}; a method is written in upper-case letters, like GET`)
  })
  return methods && (({ facts: { method } }) => methods.includes(method) || isMiscased(method, methods))
}

/** Some upstream apps ignore the case of methods and take `purge` for PURGE. */
function isMiscased(method: string, methods: readonly string[]): boolean {
  return !isRegisteredMethod(method) && methods.includes(method.toUpperCase())
}

function address(place: Place): Test | null {
  const parsed = all(place, (item) => {
    const text = item.text('an address or a range, like 192.0.2.0/24')
    if (text === null) return null
    return (
      parseAddressRange(text) ??
      item.refuse(`is ${shown(text)}; expected an address or a range, like 192.0.2.0/24`)
    )
  })
  if (parsed === null) return null
  const ranges = new AddressRanges(parsed)
  return (request) => ranges.has(request.address)
}

function host(place: Place): Test | null {
  const globs = all(place, (item) => {
    const name = item.text('a host, like shop.example.test or *.example.test')
    if (name === null) return null
    // A pattern without a star is one host. It is normalized as the host of a request is.
    if (HOST.test(name))
      return Glob.parse(name.includes('*') ? name.replace(/\.$/, '') : hostOf(name), 'ignore-case')
    return item.refuse(
      `is ${shown(name)}; expected a host without a scheme, a port or a path${asciiHint(name)}`,
    )
  })
  return globs && (({ host, hostEnd }) => host !== null && matchesAny(globs, host, 0, hostEnd))
}

function path(place: Place): Test | null {
  const globs = all(place, pathGlobs)
  if (globs === null) return null
  const sent = globs.map((each) => each.sent)
  const plain = globs.map((each) => each.plain)
  return (request) => {
    if (!request.isPlain || request.plainPath === null)
      return matchesAny(sent, request.path, 0, request.pathEnd)
    return matchesAny(plain, request.plainPath)
  }
}

function userAgent(place: Place): Test | null {
  const globs = all(place, (item) => glob(item, 'a User-Agent, like *bot*', 'ignore-case'))
  return globs && ((request) => request.userAgent !== null && matchesAny(globs, request.userAgent))
}

function header(place: Place): Test | null {
  const tests: Test[] = []
  for (const [sent, member] of place.entries()) {
    const name = foldHeaderName(sent)
    if (!TOKEN.test(sent)) member.refuse(`${shown(sent)} is not a valid header name`)
    else if (isOurHeader(name))
      member.refuse('is a header that only the proxy sets; use `forged` to match clients that send one')
    else {
      const test = headerTest(name, member)
      if (test !== null) tests.push(test)
    }
  }
  return (request) => hold(tests, request)
}

function headerTest(name: string, place: Place): Test | null {
  if (place.isMapping) {
    const members = place.members(['present'])
    if (place.isEmpty) return place.refuse('must be a value, {present: true} or {present: false}')
    const wanted = members.get('present')?.boolean() ?? null
    if (wanted === null) return null
    return ({ facts }) => hasHeader(facts.rawHeaders, name, null) === wanted
  }
  const globs = all(place, (item) => glob(item, 'a header value, like text/*', 'ignore-case'))
  return globs && (({ facts }) => hasHeader(facts.rawHeaders, name, globs))
}

function not(place: Place, needs: Needs): Test | null {
  const known = CONDITION_NAMES.filter((name) => name !== 'not')
  const tests = compileConditions(place, needs, known).map(({ test }) => test)
  if (place.isEmpty) return place.refuse('is empty, so the rule could never match')
  return (request) => {
    // `failedAs` is the result of an expression without an answer. Inside `not` it must be inverted.
    request.failedAs = !request.failedAs
    const isHolding = hold(tests, request)
    request.failedAs = !request.failedAs
    return !isHolding
  }
}

function expression(place: Place, needs: Needs): Test | null {
  const compiled = readExpression(place, needs.names, needs.unknownWords)
  if (compiled === null) return null
  const { steps } = compiled
  needs.steps += steps
  needs.ids.push(...compiled.ids)
  if (compiled.asks.has('request.path')) needs.asked.add('path')
  if (compiled.asks.has('request.host')) needs.asked.add('host')
  if (compiled.asks.has('request.method')) needs.asked.add('method')
  return (request) => {
    const isHolding = request.spend(steps) ? compiled.evaluate(request) : null
    if (isHolding !== null) return isHolding
    request.hasFailed = true
    return request.failedAs
  }
}

/** Reads every item; `null` if one is refused. */
function all<Value>(place: Place, read: (item: Place) => Value | null): readonly Value[] | null {
  const values: Value[] = []
  const items = place.items()
  for (const item of items) {
    const value = read(item)
    if (value !== null) values.push(value)
  }
  return values.length === items.length && items.length > 0 ? values : null
}

function idIn(item: Place, of: WrittenId['of'], { names, ids }: Needs): string | null {
  const name = item.text(of === 'agent' ? 'the id of an agent' : 'the id of software')
  if (name === null) return null
  ids.push({ of, name, problem: (what) => item.problem(what) })
  return resolvedId(name, names)
}

/** Refuses the word, or keeps it and warns. */
function unknownWord<Word>(item: Place, { unknownWords }: Needs, problem: string, word: Word): Word | null {
  if (unknownWords === null) return item.refuse(problem)
  unknownWords.push(item.problem(`${problem}; it never matches`))
  return word
}

function evidenceGlob(item: Place, needs: Needs): Glob | null {
  const pattern = item.text('a kind of evidence, like spoofed-browser')
  if (pattern === null) return null
  const parsed = Glob.parse(pattern, 'exact')
  if (VOCABULARIES.evidence.some((kind) => matchesAny([parsed], kind))) return parsed
  const problem = pattern.includes('*')
    ? `${shown(pattern)} matches no kind of evidence`
    : vocabularyProblem('evidence', pattern)!
  return unknownWord(item, needs, problem, parsed)
}

/** Returns ` (did you mean "x"?)`, or an empty text. */
function nearestIn(words: readonly string[], value: unknown): string {
  return typeof value === 'string' ? didYouMean(value, words) : ''
}

function glob(place: Place, what: string, casing: 'exact' | 'ignore-case'): Glob | null {
  const pattern = place.text(what)
  return pattern === null ? null : Glob.parse(pattern, casing)
}

interface PathGlobs {
  readonly sent: Glob
  readonly plain: Glob
}

/** The pattern for each form of a path. A pattern with `%20` means the same as one with a blank. */
function pathGlobs(place: Place): PathGlobs | null {
  const pattern = place.text('a path, like /api/*')
  if (pattern === null) return null
  if (!/^[/*]/.test(pattern)) return place.refuse(`is ${shown(pattern)}; a path must start with /`)
  if (/[?#]/.test(pattern))
    return place.refuse('contains a query, but only the path is compared; remove the query')
  if (NEVER_PLAIN.test(pattern))
    return place.refuse(
      'can never match: paths are normalized and contain no \\, //, /./, /../ or ;parameters',
    )
  const literals = asBytes(pattern).split('*')
  return {
    sent: new Glob(literals.map(sentForm)),
    plain: new Glob(literals.map(decoded)),
  }
}

type FingerprintTest = (print: string | null) => boolean

/** `lengths`: the lengths of the parts between separators. A star matches any text within one part. */
function fingerprints(
  place: Place,
  separator: string,
  lengths: readonly number[],
  sample: string,
): FingerprintTest | null {
  const patterns = all(place, (item) => {
    const pattern = item.text(`a fingerprint, like ${sample}`)
    if (pattern === null || isFingerprint(pattern, separator, lengths)) return pattern
    return item.refuse(
      `${shown(pattern)} is not a valid fingerprint of this kind; expected one like ${sample}`,
    )
  })
  if (patterns === null) return null
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const globs = patterns.filter((pattern) => pattern.includes('*')).map((each) => Glob.parse(each, 'exact'))
  return (print) => print !== null && (exact.has(print) || matchesAny(globs, print))
}

function isFingerprint(pattern: string, separator: string, lengths: readonly number[]): boolean {
  const parts = pattern.split(separator)
  if (parts.length !== lengths.length) return false
  return parts.every((part, index) => {
    const length = lengths[index]!
    const isHash = index > 0 && length === HASH_LENGTH
    if (!(isHash ? HASH_PART : NAMED_PART).test(part)) return false
    const literal = part.replaceAll('*', '').length
    return part.includes('*') ? literal <= length : literal === length
  })
}

/** Whether a header of this folded name was sent. With `globs`, one of them must match its value. */
function hasHeader(rawHeaders: readonly string[], name: string, globs: readonly Glob[] | null): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (isFoldedName(rawHeaders[i]!, name) && (globs === null || matchesAny(globs, rawHeaders[i + 1]!)))
      return true
  }
  return false
}

const NO_HELLO = ['malformed', 'not-tls'] as const
const METHOD = /^[A-Z][A-Z-]*$/
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/
const HOST = /^(?:[\w*.-]+|\[[0-9a-f:.*]+\])$/i
const NEVER_PLAIN = /[\\;]|\/\/|\/\.{1,2}(?:\/|$)/
const HASH_LENGTH = 12
const HASH_PART = /^[0-9a-f*]+$/
const NAMED_PART = /^[0-9a-zA-Z*]+$/

/** By name, in the order of evaluation. */
export const CONDITIONS: ReadonlyMap<string, Condition> = new Map<string, Condition>([
  ['verdict', { takes: VERDICTS.join(', '), about: 'the classification of the client', compile: verdict }],
  ['agent', { takes: 'ids, names', about: 'the agent that the client is classified as', compile: agent }],
  ['category', { takes: CATEGORIES.join(', '), about: 'the category of that agent', compile: category }],
  [
    'software',
    {
      takes: 'ids, names',
      about: 'the software that the client is classified as, whether it is an agent or not',
      compile: software,
    },
  ],
  ['evidence', { takes: 'patterns', about: 'a kind of evidence for the verdict', compile: evidence }],
  [
    'confidence_min',
    { takes: '0 to 1', about: 'the minimum confidence of the verdict', compile: confidenceMin },
  ],
  [
    'verified',
    {
      takes: `true, false, ${PROOF_METHODS.join(', ')}`,
      about:
        'whether the identity is verified, or by which method; also true for unknown signers: see `listed`',
      compile: verified,
    },
  ],
  [
    'listed',
    {
      takes: 'true, false',
      about: 'whether the client is classified as an agent in the signatures; an unknown signer is not',
      compile: listed,
    },
  ],
  [
    'signer',
    {
      takes: 'patterns',
      about: 'the verified signer of the request (Web Bot Auth), as a URL',
      compile: signer,
    },
  ],
  [
    'forged',
    {
      takes: 'true, false',
      about: 'whether the client sent headers that only the proxy may set',
      compile: forged,
    },
  ],
  ['hello', { takes: NO_HELLO.join(', '), about: 'why the connection has no fingerprint', compile: hello }],
  ['ja4', { takes: 'JA4s', about: 'the JA4 fingerprint; `*` matches any text within a part', compile: ja4 }],
  ['stable', { takes: 'stable keys', about: 'the stable key; `*` as in `ja4`', compile: stable }],
  ['ja4h', { takes: 'JA4Hs', about: 'the JA4H fingerprint; `*` as in `ja4`', compile: ja4h }],
  ['http2', { takes: 'patterns', about: 'the HTTP/2 fingerprint, in the Akamai format', compile: http2 }],
  ['method', { takes: 'methods', about: 'the method, written in upper case', compile: method }],
  ['address', { takes: 'addresses, ranges', about: 'the address of the client', compile: address }],
  [
    'host',
    { takes: 'patterns', about: 'the requested host, without its port; case-insensitive', compile: host },
  ],
  ['path', { takes: 'patterns', about: 'the requested path, without its query; see below', compile: path }],
  ['user_agent', { takes: 'patterns', about: 'the User-Agent; case-insensitive', compile: userAgent }],
  [
    'header',
    {
      takes: '`name: patterns`, `name: {present: true}`',
      about:
        'headers as sent: a value (case-insensitive), or whether the header is present; all listed headers must match. `X-Plan`, `X_Plan` and `x.plan` count as the same name',
      compile: header,
    },
  ],
  [
    'expression',
    {
      takes: 'CEL',
      about: 'an expression, for tests that no other condition can express; see below',
      compile: expression,
    },
  ],
  ['not', { takes: 'conditions', about: 'matches unless all of these conditions match', compile: not }],
])
const CONDITION_NAMES = [...CONDITIONS.keys()]
