import { conflictsIn } from '../classify/verdict/proof-evidence.ts'
import type { Action } from '../policy/action.ts'
import type { Facts } from '../policy/facts.ts'
import { PartialPolicy } from '../policy/partial.ts'
import type { Policy } from '../policy/policy.ts'
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
  readonly rules: readonly RuleCount[]
  /** Agents of the changed Sightings. */
  readonly agents: readonly ReplayShare[]
  readonly paths: readonly ReplayShare[]
  /** Rules that need data that Sightings do not keep, and how often that made a difference. */
  readonly open: readonly OpenRule[]
}

export interface RuleCount {
  readonly rule: string
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

export interface OpenRule {
  readonly policy: 'new' | 'old'
  readonly rule: string
  readonly needs: readonly string[]
  readonly sightings: number
}

/** Evaluates a new policy on Sightings and compares it with an old policy, or with what was done. */
export class Replay {
  readonly #after: Side
  /** `null`: compare with what was done. */
  readonly #before: Side | null
  readonly #nowMs: number
  readonly #recordedRules = new Tally()
  readonly #transitions = new Tally()
  readonly #agents = new Tally()
  readonly #paths = new Tally()
  readonly #recordedTrials = new Tally()
  readonly #counts = { sightings: 0, unchanged: 0, changed: 0, unjudged: 0, bySettings: 0 }

  constructor(after: Policy, before: Policy | null, nowMs: number) {
    this.#after = new Side(after)
    this.#before = before === null ? null : new Side(before)
    this.#nowMs = nowMs
  }

  add(sighting: Sighting): void {
    this.#counts.sightings++
    if (OF_SETTINGS.has(sighting.rule)) {
      this.#counts.bySettings++
      return
    }
    const facts = factsOf(sighting)
    const after = this.#after.decide(facts, this.#nowMs)
    const before = this.#before === null ? this.#recorded(sighting) : this.#before.decide(facts, this.#nowMs)
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
      agents: shares(this.#agents),
      paths: shares(this.#paths),
      open: [
        ...this.#after.open('new'),
        ...(this.#before?.open('old') ?? []),
        ...this.#recordedTrials.top(OPEN_MAX).map(({ key: [rule], count }) => {
          return { policy: 'old' as const, rule: rule!, needs: [WHAT_WAS_DONE], sightings: count }
        }),
      ],
    }
  }

  /** `null` for a trial rule: the Sighting keeps only what it would have done. */
  #recorded({ rule, action, dryRun }: Sighting): string | null {
    if (dryRun) this.#recordedTrials.add(rule)
    else this.#recordedRules.add(rule)
    return dryRun ? null : action
  }

  #changed({ agent, software, verdict, path }: Sighting, from: string, to: string): void {
    this.#counts.changed++
    this.#transitions.add(from, to)
    this.#agents.add(agent ?? software ?? verdict, from, to)
    this.#paths.add(path, from, to)
  }

  #rules(): RuleCount[] {
    const before =
      this.#before?.counts ??
      new Map(this.#recordedRules.top(OPEN_MAX).map(({ key, count }) => [key[0]!, count]))
    const names = new Set([...this.#after.counts.keys(), ...before.keys()])
    return [...names].map((rule) => ({
      rule,
      before: before.get(rule) ?? null,
      after: this.#after.counts.get(rule) ?? null,
      onTrial: this.#after.trials.get(rule) ?? 0,
    }))
  }
}

/** A policy and its decisions so far. */
class Side {
  readonly counts: Map<string, number>
  readonly trials = new Map<string, number>()
  readonly #policy: PartialPolicy
  readonly #open = new Map<string, number>()

  constructor(policy: Policy) {
    this.#policy = new PartialPolicy(policy)
    const names = [...policy.rules.map(({ decision }) => decision.rule), policy.otherwise.rule]
    this.counts = new Map(names.map((name) => [name, 0]))
  }

  /** The action; `null`: unknown. */
  decide(facts: Facts, nowMs: number): string | null {
    const { outcome, open, trials } = this.#policy.decide(facts, nowMs)
    for (const rule of open) this.#open.set(rule, (this.#open.get(rule) ?? 0) + 1)
    for (const rule of trials) this.trials.set(rule, (this.trials.get(rule) ?? 0) + 1)
    if (outcome === null) return null
    this.counts.set(outcome.rule, this.counts.get(outcome.rule)! + 1)
    return actionText(outcome.action)
  }

  open(policy: 'new' | 'old'): OpenRule[] {
    return [...this.#policy.needs].map(([rule, needs]) => {
      return { policy, rule, needs, sightings: this.#open.get(rule) ?? 0 }
    })
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

function shares(tally: Tally): ReplayShare[] {
  return tally.top().map(({ key: [name, from, to], count }) => ({ name: name!, count, from: from!, to: to! }))
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
    case 'route':
      return `route ${action.upstream}`
  }
}

/** The part of an action that Sightings record. */
function kindOf(action: string): string {
  return action.split(' ', 1)[0]!
}

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
])
