import {
  isRestricting,
  type KnownToActions,
  type Outcome,
  POLICY_LAYERS,
  type PolicyLayer,
  readAction,
  TAG,
} from './action.ts'
import { readDuration } from './charging/members.ts'
import { type CompiledCondition, compileConditions } from './condition.ts'
import { allOf, type PolicyNeeds, type Test } from './condition-form.ts'
import { daysSince1970 } from '../classify/known/calendar.ts'
import type { SoftwareNames } from '../classify/known/software-names.ts'
import { DocumentFault, type DocumentProblem, Place, shown } from '../shared/problem.ts'
import { ExpressionCompiler } from './expression.ts'
import type { PaymentTerms } from '../payment/payment-terms.ts'
import { PathStarts, pathStart } from './compact/path-starts.ts'
import { type NeededFacts, REQUEST_STEPS_MAX } from './request.ts'
import { idWarnings, type WrittenId } from './written-id.ts'

/** A compiled policy: of the organisation, of an app, or of both. Nothing in it is parsed or lower-cased at request time. */
export interface Policy extends RulesByLayer {
  /** The layers that have rules. A request tries their rules in this order. */
  readonly layers: readonly RuleList[]
  /** The outcome if no rule holds. */
  readonly otherwise: SettledOutcome
  readonly asked: NeededFacts
  /**
   * How long a request waits for the key of its signer. 0: it goes on as if the signature could not be
   * checked.
   */
  readonly unknownSignerWaitMs: number
  /** What the document sets. The rest are defaults, which another layer may replace. */
  readonly sets: { readonly otherwise: boolean; readonly unknownSigner: boolean }
  /** The most steps that all expressions can take, each evaluated once. */
  readonly steps: number
  /** Ids of agents and software, in the order in which they are written. */
  readonly ids: readonly WrittenId[]
  /** Words of a stored policy that are unknown here. */
  readonly unknownWords: readonly DocumentProblem[]
}

type RulesByLayer = Readonly<Record<PolicyLayer, RuleList>>

/** The rules of a layer in the order in which they are tried. */
export interface RuleList {
  readonly rules: readonly Rule[]
  /** `null`: every rule is tried. */
  readonly starts: PathStarts | null
  /** Of each rule that asks for the call of an MCP server. */
  readonly mcp: readonly McpAsking[]
}

/** For which requests a rule asks for the call of an MCP server. */
export interface McpAsking {
  /** Its conditions of the method, host and path. */
  readonly test: Test
  readonly expiresMs: number
}

export interface Rule {
  /** Whether the rule holds. A fleet of many apps has tens of thousands of rules, so few objects belong to each. */
  readonly test: Test
  /** Its conditions with their names and values, for explanations. */
  readonly conditions: readonly CompiledCondition[]
  readonly decision: SettledOutcome
  readonly isRestricting: boolean
  /** A dry run: the proxy reports what the rule would have done, and tries the next rule. */
  readonly isDryRun: boolean
  /** The rule does not hold from this time on. `Infinity`: it never expires. */
  readonly expiresMs: number
}

/** Created once and returned for each request for which no dry-run rule held. */
export interface SettledOutcome extends Outcome {
  readonly wouldHave: null
}

export interface PolicyReading {
  /** An app has only rules; the organisation may have rules before and after them. Default: `organisation`. */
  readonly of?: 'organisation' | 'app'
  /** The names that a rule may route to; `null`: not checked. */
  readonly upstreams?: readonly string[] | null
  /** How payments are taken; `null`: rules that charge are not checked against it. */
  readonly payments?: PaymentTerms | null
  /** Maps ids, names and aliases to ids at compile time; `null`: each name stands for itself. */
  readonly names?: SoftwareNames | null
}

/**
 * Reads a policy that was accepted before, possibly by another version with other words. A rule with an
 * unknown category, purpose or kind of evidence stays, and the word never matches: refusing the policy would
 * turn off all of its rules. Everything else is checked as in `parsePolicy`.
 */
export function parseAcceptedPolicy(value: unknown, reading: PolicyReading = {}): Policy {
  return readPolicy(value, reading, [])
}

/**
 * Throws a DocumentFault with all problems. The policy is compiled again when the signatures change, because
 * `names` do.
 */
export function parsePolicy(value: unknown, reading: PolicyReading = {}): Policy {
  return readPolicy(value, reading, null)
}

/**
 * The policy for the requests of one app. Its rules are tried after the organisation's `first` rules and before
 * its `last` ones. The lists of rules are shared, so an app costs only its own rules.
 */
export function policyOfApp(organisation: Policy, app: Policy): Policy {
  const { first, last } = organisation
  const asked = Object.keys(app.asked) as (keyof NeededFacts)[]
  return Object.freeze({
    ...inLayers({ first, app: app.app, last }),
    otherwise: app.sets.otherwise ? app.otherwise : organisation.otherwise,
    asked: Object.fromEntries(
      asked.map((fact) => [fact, organisation.asked[fact] || app.asked[fact]]),
    ) as unknown as NeededFacts,
    unknownSignerWaitMs: app.sets.unknownSigner ? app.unknownSignerWaitMs : organisation.unknownSignerWaitMs,
    sets: {
      otherwise: organisation.sets.otherwise || app.sets.otherwise,
      unknownSigner: organisation.sets.unknownSigner || app.sets.unknownSigner,
    },
    steps: organisation.steps + app.steps,
    ids: [...organisation.ids, ...app.ids],
    unknownWords: [...organisation.unknownWords, ...app.unknownWords],
  })
}

/** All rules in the order in which they are tried. */
export function allRules({ layers }: Policy): readonly Rule[] {
  return layers.flatMap(({ rules }) => rules)
}

export function inLayers(rules: RulesByLayer): RulesByLayer & Pick<Policy, 'layers'> {
  const layers = POLICY_LAYERS.map((layer) => rules[layer]).filter((each) => each.rules.length > 0)
  return { ...rules, layers: Object.freeze(layers) }
}

function readPolicy(
  value: unknown,
  { of = 'organisation', upstreams = null, payments = null, names = null }: PolicyReading,
  unknownWords: DocumentProblem[] | null,
): Policy {
  const problems: DocumentProblem[] = []
  const memberNames = of === 'app' ? MEMBERS : [...MEMBERS, 'first', 'last']
  // A file in which everything is commented out is empty.
  const members = Place.of(value ?? {}, problems).members(memberNames)
  const needs: PolicyNeeds = {
    asked: new Set(),
    steps: 0,
    mcpConditions: 0,
    names,
    ids: [],
    unknownWords,
    expressions: new ExpressionCompiler(),
  }
  const known = { upstreams, payments }
  const reader = { known, needs, ruleNames: new Set([OTHERWISE]) }
  const rules = members.get('rules')
  if (rules !== undefined && (members.has('first') || members.has('last')))
    rules.refuse('are the same as `last`; with `first` or `last`, move them there')
  const own: PolicyLayer = of === 'app' ? 'app' : 'last'
  const byLayer: RulesByLayer = {
    first: of === 'app' ? NO_RULES : readRules(members.get('first'), 'first', reader),
    app: of === 'app' ? readRules(rules, 'app', reader) : NO_RULES,
    last: of === 'app' ? NO_RULES : readRules(members.get('last') ?? rules, 'last', reader),
  }
  const otherwise = members.get('otherwise')
  const action = otherwise === undefined ? TAG : readAction(otherwise, known)
  const unknownSignerWaitMs = readUnknownSigner(members.get('unknown_signer'))
  if (problems.length > 0) throw new DocumentFault('POLICY_INVALID', problems)
  const { asked, steps, ids } = needs
  return Object.freeze({
    ...inLayers(byLayer),
    otherwise: { action: action ?? TAG, rule: OTHERWISE, layer: own, wouldHave: null },
    asked: {
      host: asked.has('host'),
      path: asked.has('path'),
      address: asked.has('address'),
      userAgent: asked.has('user_agent'),
      // With another method, the app could ignore the body.
      method: asked.has('method') || needs.mcpConditions > 0,
      purpose: asked.has('purpose'),
      mcp: needs.mcpConditions > 0,
    },
    unknownSignerWaitMs: unknownSignerWaitMs ?? 0,
    sets: { otherwise: otherwise !== undefined, unknownSigner: members.has('unknown_signer') },
    steps,
    ids,
    unknownWords: unknownWords ?? [],
  })
}

/**
 * Problems that do not make the policy invalid. `names`: the names in use; `null`: not known yet, so ids are
 * not checked.
 */
export function policyWarnings(
  { steps, ids, unknownWords }: Policy,
  names: SoftwareNames | null,
): readonly DocumentProblem[] {
  const ofWords = names === null ? unknownWords : [...unknownWords, ...idWarnings(ids, names)]
  if (steps * READINGS_MAX <= REQUEST_STEPS_MAX) return ofWords
  const what = `its expressions can take ${steps} steps, and up to ${READINGS_MAX} times as many if a request can be read in several ways; each request is limited to ${REQUEST_STEPS_MAX} steps, and expressions beyond that count as failed`
  return [{ pointer: '', within: null, what }, ...ofWords]
}

/** Reads `pass` or a wait. */
function readUnknownSigner(place: Place | undefined): number | null {
  if (place === undefined) return 0
  if (!place.isMapping) return place.choice(['pass'] as const) === null ? null : 0
  const wait = place.members(['wait']).get('wait')
  if (wait === undefined) return place.refuse('must be pass or {wait: 300ms}')
  return readDuration(wait, 1, SIGNER_WAIT_MS_MAX)
}

interface RuleReader {
  readonly known: KnownToActions
  readonly needs: PolicyNeeds
  /** The names that the document has used. */
  readonly ruleNames: Set<string>
}

function readRules(place: Place | undefined, layer: PolicyLayer, reader: RuleReader): RuleList {
  const value = place?.value ?? []
  if (!Array.isArray(value)) {
    place!.refuse(`is ${shown(value)}; expected a list of rules`)
    return NO_RULES
  }
  if (value.length > RULES_MAX) {
    place!.refuse(`has ${value.length} rules; at most ${RULES_MAX}`)
    return NO_RULES
  }
  const rules: Rule[] = []
  const mcp: McpAsking[] = []
  for (const item of value.length === 0 ? [] : place!.items()) {
    const before = reader.needs.mcpConditions
    const rule = readRule(item, layer, reader)
    if (rule === null) continue
    rules.push(rule)
    if (reader.needs.mcpConditions > before) mcp.push(askingOf(rule))
  }
  const starts = PathStarts.of(rules.map(startOf))
  return Object.freeze({ rules: Object.freeze(rules), starts, mcp: mcp.length === 0 ? NO_MCP : mcp })
}

function askingOf({ conditions, expiresMs }: Rule): McpAsking {
  const tests = conditions.flatMap(({ name, test }) => (TARGET_CONDITIONS.has(name) ? [test] : []))
  return { test: allOf(tests), expiresMs }
}

function startOf({ conditions }: Rule): string {
  return pathStart(conditions.find(({ name }) => name === 'path')?.takes)
}

function readRule(item: Place, layer: PolicyLayer, { known, needs, ruleNames }: RuleReader): Rule | null {
  if (!item.isMapping) return item.refuse(`is ${shown(item.value)}; expected a mapping`)
  const name = nameOf(item, ruleNames)
  const place = name === null ? item : item.inside(`rule "${name}"`)
  const members = place.members(RULE_MEMBERS)
  const when = members.get('when')
  const action = members.get('action')
  if (when === undefined) place.refuse('needs `when`; use `when: {}` to match every request')
  if (action === undefined) place.refuse('needs `action`')
  const conditions = when === undefined ? [] : compileConditions(when, needs)
  const read = action === undefined ? null : readAction(action, known)
  const isDryRun = members.get('dry_run')?.boolean() ?? false
  const expires = members.get('expires')
  const expiresMs = expires === undefined ? Number.POSITIVE_INFINITY : timestampMs(expires)
  if (name === null || read === null || expiresMs === null) return null
  const decision: SettledOutcome = { action: read, rule: name, layer, wouldHave: null }
  const test = allOf(conditions.map((each) => each.test))
  return { test, conditions, decision, isRestricting: isRestricting(read), isDryRun, expiresMs }
}

/** People and programs use this name to refer to the rule: in Sightings, in responses, in logs. */
function nameOf(item: Place, names: Set<string>): string | null {
  const member = item.entries().get('name')
  if (member === undefined) return item.refuse('needs a name')
  const name = member.text('a name')
  if (name === null) return null
  if (!RULE_NAME.test(name))
    return member.refuse(`is ${shown(name)}; expected 1 to 64 letters, digits, spaces and . _ - : /`)
  if (names.has(name)) return member.refuse(`${shown(name)} is already used`)
  names.add(name)
  return name
}

/** Parses an RFC 3339 time. */
export function timestampMs(place: Place): number | null {
  const text = place.text('a time, like 2027-01-31T12:00:00Z')
  if (text === null) return null
  const [, year, month, day, hour, minute, second, sign, offsetHour, offsetMinute] = (
    TIMESTAMP.exec(text) ?? []
  ).map((part) => part ?? '0')
  const days = year === undefined ? null : daysSince1970(Number(year), Number(month), Number(day))
  const isTime = Number(hour) < 24 && Number(minute) < 60 && Number(second) < 61
  if (days === null || !isTime || Number(offsetHour) > 23 || Number(offsetMinute) > 59)
    return place.refuse(`is ${shown(text)}; expected a time, like 2027-01-31T12:00:00Z`)
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === '-' ? -1 : 1)
  return ((days * 24 + Number(hour)) * 60 + Number(minute) - offset) * 60_000 + Number(second) * 1000
}

/** People do not wait longer for a page, and every waiting request stays open. */
const SIGNER_WAIT_MS_MAX = 5_000
const OTHERWISE = 'otherwise'
const MEMBERS = ['rules', 'otherwise', 'unknown_signer']
/** What `mayAskForCall` tests. */
const TARGET_CONDITIONS: ReadonlySet<string> = new Set(['method', 'host', 'path'])
const NO_MCP: readonly McpAsking[] = []
const NO_RULES: RuleList = Object.freeze({ rules: Object.freeze([]), starts: null, mcp: NO_MCP })
const RULE_MEMBERS = ['name', 'when', 'action', 'dry_run', 'expires']
const RULE_NAME = /^[\w.:/-](?:[\w .:/-]{0,62}[\w.:/-])?$/
/** In each layer. A request may try all rules of its layers. A thousand rules take about ten microseconds. */
const RULES_MAX = 1000
/** Each of the two forms of a path, with each of the two results of an expression without an answer. */
const READINGS_MAX = 4
const TIMESTAMP = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))$/
