import { isRestricting, type Outcome, readAction, readDuration } from './action.ts'
import { type CompiledCondition, compileConditions } from './condition.ts'
import type { PolicyNeeds, Test } from './condition-form.ts'
import { daysSince1970 } from '../classify/known/calendar.ts'
import type { SoftwareNames } from '../classify/known/software-names.ts'
import { DocumentFault, type DocumentProblem, Place, shown } from '../shared/problem.ts'
import { ExpressionCompiler } from './expression.ts'
import { type NeededFacts, REQUEST_STEPS_MAX } from './request.ts'
import { idWarnings, type WrittenId } from './written-id.ts'

/** A compiled policy. Nothing in it is parsed, sorted or lower-cased at request time. */
export interface Policy {
  readonly rules: readonly Rule[]
  /** The outcome if no rule holds. */
  readonly otherwise: SettledOutcome
  readonly asked: NeededFacts
  /**
   * How long a request waits for the key of its signer. 0: it goes on as if the signature could not be
   * checked.
   */
  readonly unknownSignerWaitMs: number
  /** The most steps that all expressions can take, each evaluated once. */
  readonly steps: number
  /** Ids of agents and software, in the order in which they are written. */
  readonly ids: readonly WrittenId[]
  /** Words of a stored policy that are unknown here. */
  readonly unknownWords: readonly DocumentProblem[]
}

export interface Rule {
  /** The rule holds if all of them hold. */
  readonly tests: readonly Test[]
  /** The same conditions with their names and values, for explanations. */
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

/**
 * Reads a policy that was accepted before, possibly by another version with other words. A rule with an
 * unknown category, purpose or kind of evidence stays, and the word never matches: refusing the policy would
 * turn off all of its rules. Everything else is checked as in `parsePolicy`.
 */
export function parseAcceptedPolicy(
  value: unknown,
  upstreams: readonly string[] | null = null,
  names: SoftwareNames | null = null,
): Policy {
  return readPolicy(value, upstreams, names, [])
}

/**
 * Throws a DocumentFault with all problems. `upstreams`: the names a rule may route to; `null` skips that
 * check. `names`: maps ids, names and aliases to ids at compile time, so the policy is compiled again when
 * the signatures change; `null` leaves each name as written.
 */
export function parsePolicy(
  value: unknown,
  upstreams: readonly string[] | null = null,
  names: SoftwareNames | null = null,
): Policy {
  return readPolicy(value, upstreams, names, null)
}

function readPolicy(
  value: unknown,
  upstreams: readonly string[] | null,
  names: SoftwareNames | null,
  unknownWords: DocumentProblem[] | null,
): Policy {
  const problems: DocumentProblem[] = []
  // A file in which everything is commented out is empty.
  const members = Place.of(value ?? {}, problems).members(['rules', 'otherwise', 'unknown_signer'])
  const needs: PolicyNeeds = {
    asked: new Set(),
    steps: 0,
    names,
    ids: [],
    unknownWords,
    expressions: new ExpressionCompiler(),
  }
  const rules = readRules(members.get('rules'), upstreams, needs)
  const otherwise = members.get('otherwise')
  const action = otherwise === undefined ? TAG : readAction(otherwise, upstreams)
  const unknownSignerWaitMs = readUnknownSigner(members.get('unknown_signer'))
  if (problems.length > 0) throw new DocumentFault('POLICY_INVALID', problems)
  const { asked, steps, ids } = needs
  return Object.freeze({
    rules: Object.freeze(rules),
    otherwise: { action: action ?? TAG, rule: OTHERWISE, wouldHave: null },
    asked: {
      host: asked.has('host'),
      path: asked.has('path'),
      address: asked.has('address'),
      userAgent: asked.has('user_agent'),
      method: asked.has('method'),
    },
    unknownSignerWaitMs: unknownSignerWaitMs ?? 0,
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

function readRules(
  place: Place | undefined,
  upstreams: readonly string[] | null,
  needs: PolicyNeeds,
): Rule[] {
  const value = place?.value ?? []
  if (!Array.isArray(value)) {
    place!.refuse(`is ${shown(value)}; expected a list of rules`)
    return []
  }
  if (value.length > RULES_MAX) {
    place!.refuse(`has ${value.length} rules; at most ${RULES_MAX}`)
    return []
  }
  const names = new Set<string>([OTHERWISE])
  const rules: Rule[] = []
  for (const item of value.length === 0 ? [] : place!.items()) {
    const rule = readRule(item, names, upstreams, needs)
    if (rule !== null) rules.push(rule)
  }
  return rules
}

function readRule(
  item: Place,
  names: Set<string>,
  upstreams: readonly string[] | null,
  needs: PolicyNeeds,
): Rule | null {
  if (!item.isMapping) return item.refuse(`is ${shown(item.value)}; expected a mapping`)
  const name = nameOf(item, names)
  const place = name === null ? item : item.inside(`rule "${name}"`)
  const members = place.members(RULE_MEMBERS)
  const when = members.get('when')
  const action = members.get('action')
  if (when === undefined) place.refuse('needs `when`; use `when: {}` to match every request')
  if (action === undefined) place.refuse('needs `action`')
  const conditions = when === undefined ? [] : compileConditions(when, needs)
  const read = action === undefined ? null : readAction(action, upstreams)
  const isDryRun = members.get('dry_run')?.boolean() ?? false
  const expires = members.get('expires')
  const expiresMs = expires === undefined ? Number.POSITIVE_INFINITY : timestampMs(expires)
  if (name === null || read === null || expiresMs === null) return null
  const decision: SettledOutcome = { action: read, rule: name, wouldHave: null }
  const tests = conditions.map(({ test }) => test)
  return { tests, conditions, decision, isRestricting: isRestricting(read), isDryRun, expiresMs }
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
const TAG = { kind: 'tag', headers: [] } as const
const RULE_MEMBERS = ['name', 'when', 'action', 'dry_run', 'expires']
const RULE_NAME = /^[\w.:/-](?:[\w .:/-]{0,62}[\w.:/-])?$/
/** Each request may try all rules. A thousand rules take about ten microseconds. */
const RULES_MAX = 1000
/** Each of the two forms of a path, with each of the two results of an expression without an answer. */
const READINGS_MAX = 4
const TIMESTAMP = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))$/
