import { conflictsIn } from '../classify/verdict/proof-evidence.ts'
import type { Action, PolicyLayer } from '../policy/action.ts'
import type { Facts } from '../policy/facts.ts'
import { missingFacts, PartialPolicies, type UnknownFacts } from '../policy/partial.ts'
import { allRules, type Policy, type Rule, type SettledOutcome } from '../policy/policy.ts'
import { formOf } from './privacy/address-form.ts'
import { isWholePath } from './privacy/path-form.ts'
import { proofIn } from './sighting-document.ts'
import type { Sighting } from './sighting.ts'

/** Compares what a policy would decide for past requests with what was decided. */
export interface ReplayReport {
  readonly sightings: number
  readonly unchanged: number
  readonly changed: number
  /** Neither: the result depends on data that Sightings do not keep. */
  readonly unjudged: number
  /** Decided by proxy settings, independent of the policy. */
  readonly bySettings: number
  /** Most frequent first, here and below. */
  readonly transitions: readonly { readonly from: string; readonly to: string; readonly count: number }[]
  /** In order. Of apps that the report is not about, only rules that mattered, most frequent first. */
  readonly rules: readonly RuleCount[]
  /** Verdicts of the changed Sightings. */
  readonly verdicts: readonly ReplayShare[]
  /** Their agents. */
  readonly agents: readonly ReplayShare[]
  readonly paths: readonly ReplayShare[]
  /** Rules that need data that Sightings do not keep, and how often that made a difference. */
  readonly open: readonly OpenRule[]
}

/** Names of rules are unique only within a layer of an app. */
interface RuleKey {
  readonly rule: string
  readonly layer: PolicyLayer
  /** `null`: a rule of the organisation. */
  readonly app: string | null
}

export interface RuleCount extends RuleKey {
  /** How often it decided; `null`: the policy has no such rule. */
  readonly before: number | null
  readonly after: number | null
  /** How often it matches in the new policy but has no effect because it is on trial (`dry_run`). */
  readonly onTrial: number
}

export interface ReplayShare {
  readonly name: string
  readonly count: number
  readonly from: string
  readonly to: string
}

export interface OpenRule extends RuleKey {
  readonly policy: 'new' | 'old'
  readonly needs: readonly string[]
  readonly sightings: number
}

/** The policy for the requests of an app. For `null`, without rules of any app. `null`: it would be too large. */
export type PolicyFor = (app: string | null) => Policy | null

/** Evaluates new policies on Sightings and compares them with old ones, or with what was done. */
export class Replay {
  readonly #after: Side
  /** `null`: compare with what was done. */
  readonly #before: Side | null
  readonly #nowMs: number
  readonly #app: string | null
  readonly #recordedRules = new Tally()
  readonly #transitions = new Tally()
  readonly #verdicts = new Tally()
  readonly #agents = new Tally()
  readonly #paths = new Tally()
  readonly #recordedTrials = new Tally()
  readonly #counts = { sightings: 0, unchanged: 0, changed: 0, unjudged: 0, bySettings: 0 }

  /** `app`: the only app of the Sightings; `null`: any apps. */
  constructor(after: PolicyFor, before: PolicyFor | null, nowMs: number, app: string | null = null) {
    this.#after = new Side(after, app)
    this.#before = before === null ? null : new Side(before, app)
    this.#nowMs = nowMs
    this.#app = app
  }

  add(sighting: Sighting): void {
    this.#counts.sightings++
    if (OF_SETTINGS.has(sighting.rule)) {
      this.#counts.bySettings++
      return
    }
    const { app } = sighting
    const facts = factsOf(sighting)
    const after = this.#after.decide(facts, app, this.#nowMs)
    const before =
      this.#before === null ? this.#recorded(sighting) : this.#before.decide(facts, app, this.#nowMs)
    if (after === null || before === null) {
      this.#counts.unjudged++
      return
    }
    const [from, to] = this.#before === null ? [before, kindOf(after)] : [before, after]
    if (from === to) this.#counts.unchanged++
    else this.#changed(sighting, from, to)
  }

  report(): ReplayReport {
    return {
      ...this.#counts,
      transitions: this.#transitions
        .top()
        .map(({ key: [from, to], count }) => ({ from: from!, to: to!, count })),
      rules: this.#rules(),
      verdicts: shares(this.#verdicts),
      agents: shares(this.#agents),
      paths: shares(this.#paths),
      open: [
        ...this.#after.open('new'),
        ...(this.#before?.open('old') ?? []),
        ...this.#recordedTrials.top(OPEN_MAX).map(({ key, count }) => {
          return { policy: 'old' as const, ...keyIn(key), needs: [WHAT_WAS_DONE], sightings: count }
        }),
      ],
    }
  }

  /** `null` for a trial rule: the Sighting keeps only what it would have done. */
  #recorded({ rule, layer, app, action, dryRun }: Sighting): string | null {
    // Earlier versions had only the policy of the organisation.
    const key = [rule, layer ?? 'last', ...(layer === 'app' ? [app] : [])]
    if (dryRun) this.#recordedTrials.add(...key)
    else this.#recordedRules.add(...key)
    return dryRun ? null : action
  }

  #changed({ agent, software, verdict, path }: Sighting, from: string, to: string): void {
    this.#counts.changed++
    this.#transitions.add(from, to)
    this.#verdicts.add(verdict, from, to)
    this.#agents.add(agent ?? software ?? verdict, from, to)
    this.#paths.add(path, from, to)
  }

  #rules(): RuleCount[] {
    const earlier = new Map(
      (this.#before?.tallies() ?? this.#recordedTallies()).map((each) => [JSON.stringify(each.key), each]),
    )
    const kept = this.#after.tallies().map(({ key, decided, trials }) => {
      const text = JSON.stringify(key)
      const before = earlier.get(text)?.decided ?? (this.#before === null ? null : this.#missing(key))
      earlier.delete(text)
      return { ...key, before, after: decided, onTrial: trials }
    })
    const gone = [...earlier.values()].map(({ key, decided }) => {
      return { ...key, before: decided, after: this.#missing(key), onTrial: 0 }
    })
    const rows = [...kept, ...gone]
    const isListed = ({ app }: RuleKey) => app === null || app === this.#app
    const others = rows.filter((each) => !isListed(each))
    others.sort((one, other) => weight(other) - weight(one))
    return [...rows.filter(isListed), ...others.slice(0, OPEN_MAX)]
  }

  /** How often a rule decided that was not counted. Both sides have the same rules of all other apps. */
  #missing({ app }: RuleKey): number | null {
    return app === null || app === this.#app ? null : 0
  }

  #recordedTallies(): readonly Pick<RuleTally, 'key' | 'decided'>[] {
    return this.#recordedRules.top(OPEN_MAX).map(({ key, count }) => ({ key: keyIn(key), decided: count }))
  }
}

interface RuleTally {
  readonly key: RuleKey
  /** Facts that it needs and that Sightings do not keep. */
  readonly needs: Set<string>
  decided: number
  trials: number
  open: number
}

/** The policies of one side of the comparison, and what they decided so far. */
class Side {
  readonly #policyFor: PolicyFor
  /** By the facts that privacy settings have kept from the requests. */
  readonly #policies = new Map<UnknownFacts, PartialPolicies>()
  /** Each rule has an outcome of its own. All rules of the first policy, then those of others that mattered. */
  readonly #tallies = new Map<SettledOutcome, RuleTally>()

  constructor(policyFor: PolicyFor, app: string | null) {
    this.#policyFor = policyFor
    const policy = policyFor(app)
    if (policy === null) return
    for (const rule of allRules(policy)) this.#tally(rule.decision, app, rule)
    this.#tally(policy.otherwise, app, null)
  }

  /** The action; `null`: unknown. */
  decide(facts: Facts, app: string, nowMs: number): string | null {
    const policy = this.#policyFor(app)
    if (policy === null) return null
    const unknown = unknownOf(facts)
    const policies = this.#policies.get(unknown) ?? new PartialPolicies(unknown)
    this.#policies.set(unknown, policies)
    const { outcome, open, trials } = policies.decide(policy, facts, nowMs)
    for (const rule of open) {
      const tally = this.#tally(rule.decision, app, rule)
      tally.open++
      if (unknown.size > 0) for (const need of missingFacts(rule, unknown)) tally.needs.add(need)
    }
    for (const rule of trials) this.#tally(rule.decision, app, rule).trials++
    if (outcome === null) return null
    this.#tally(outcome, app, null).decided++
    return actionText(outcome.action)
  }

  tallies(): readonly RuleTally[] {
    return [...this.#tallies.values()]
  }

  open(policy: 'new' | 'old'): OpenRule[] {
    const open = this.tallies().filter(({ needs }) => needs.size > 0)
    return open
      .slice(0, OPEN_MAX)
      .map(({ key, needs, open }) => ({ policy, ...key, needs: [...needs], sightings: open }))
  }

  /** `rule`: `null` if its outcome is known. */
  #tally(outcome: SettledOutcome, app: string | null, rule: Rule | null): RuleTally {
    const known = this.#tallies.get(outcome)
    if (known !== undefined) return known
    const { rule: name, layer } = outcome
    const key = { rule: name, layer, app: layer === 'app' ? app : null }
    const needs = new Set(rule === null ? [] : missingFacts(rule))
    const made = { key, needs, decided: 0, trials: 0, open: 0 }
    this.#tallies.set(outcome, made)
    return made
  }
}

/** Counts values from clients. Memory is bounded for any input. */
class Tally {
  readonly #counts = new Map<string, { readonly key: readonly string[]; count: number }>()

  add(...key: readonly string[]): void {
    const text = JSON.stringify(key)
    const found = this.#counts.get(text)
    if (found !== undefined) found.count++
    else if (this.#counts.size < KEYS_MAX) this.#counts.set(text, { key, count: 1 })
  }

  top(most = TOP): readonly { readonly key: readonly string[]; readonly count: number }[] {
    return [...this.#counts.values()].sort((a, b) => b.count - a.count).slice(0, most)
  }
}

/** The key of a rule in a Tally. */
function keyIn([rule, layer, app]: readonly string[]): RuleKey {
  return { rule: rule!, layer: layer as PolicyLayer, app: app ?? null }
}

function weight({ before, after, onTrial }: RuleCount): number {
  return (before ?? 0) + (after ?? 0) + onTrial
}

function shares(tally: Tally): ReplayShare[] {
  return tally.top().map(({ key: [name, from, to], count }) => ({ name: name!, count, from: from!, to: to! }))
}

function unknownOf({ address, path }: Pick<Facts, 'address' | 'path'>): UnknownFacts {
  const hasPath = isWholePath(path)
  const form = formOf(address)
  if (form === 'full' || form === 'unknown') return hasPath ? NOTHING : NO_PATH
  return hasPath ? NO_ADDRESS : NEITHER
}

function factsOf(sighting: Sighting): Facts {
  const { agent, category, purposes, software } = sighting
  const kinds = sighting.evidence.map((kind) => ({ kind, detail: '', weight: 0 }))
  return {
    method: sighting.method,
    host: sighting.host,
    path: sighting.path,
    address: sighting.address,
    rawHeaders: sighting.userAgent === null ? [] : ['User-Agent', sighting.userAgent],
    print: {
      connection: {
        ja4: sighting.ja4,
        stable: sighting.stable,
        http2: sighting.http2,
        noHello: sighting.noHello,
      },
      ja4h: sighting.ja4h,
    },
    verdict: {
      kind: sighting.verdict as Facts['verdict']['kind'],
      agent: agent === null ? null : { id: agent, name: agent, category: category ?? '', purposes },
      software: software === null ? null : { id: software, name: software, kind: 'tool' },
      confidence: sighting.confidence,
      nameConfidence: sighting.nameConfidence,
      proof: proofIn(sighting),
      conflicts: conflictsIn(kinds),
      evidence: kinds,
    },
    forged: sighting.forged,
    campaign: sighting.campaign,
  }
}

/** Text of an action. Actions that differ for a client have different texts. */
function actionText(action: Action): string {
  switch (action.kind) {
    case 'pass':
    case 'tag':
      return action.kind
    case 'block':
      return `block ${action.status}`
    case 'rate_limit':
      return `rate_limit ${action.requests} in ${action.windowMs}ms`
    case 'tarpit':
      return `tarpit ${action.delayMs}ms`
    case 'redirect':
      return `redirect ${action.to}`
    case 'charge':
      return `charge ${action.price} ${action.currency} for ${action.passMs}ms`
    case 'route':
      return `route ${action.upstream}`
  }
}

/** The part of an action that Sightings record. */
function kindOf(action: string): string {
  return action.split(' ', 1)[0]!
}

const NOTHING: UnknownFacts = new Set()
const NO_PATH: UnknownFacts = new Set(['path'])
const NO_ADDRESS: UnknownFacts = new Set(['address'])
const NEITHER: UnknownFacts = new Set(['address', 'path'])
const TOP = 10
const OPEN_MAX = 1000
const KEYS_MAX = 100_000
const WHAT_WAS_DONE = 'what was done: only what this rule, on trial, would have done was recorded'
/** Rule names of decisions made by settings, without evaluating a rule. */
const OF_SETTINGS: ReadonlySet<string> = new Set([
  'proxy.fail',
  'proxy.hosts',
  'proxy.tls.require_sni',
  'proxy.tls.sni_mismatch',
  'proxy.odd_header_names',
  'mcp.message',
])
