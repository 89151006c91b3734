import { hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { APPS_MAX, isSlug } from '../apps/app.ts'
import type { SoftwareNames } from '../classify/known/software-names.ts'
import { withoutSources } from '../policy/compact/lean-rules.ts'
import { type Policy, parseAcceptedPolicy, policyOfApp } from '../policy/policy.ts'
import { Fault } from '../shared/fault.ts'
import { type ByteRange, itemRanges } from '../shared/json-bytes.ts'
import { DocumentFault } from '../shared/problem.ts'

/** The policy of an app, as JSON. It stays text until it is compiled, so that what did not change is not parsed. */
export interface AppPolicyText {
  readonly app: string
  readonly document: string
}

/** The policies of a Snapshot document. */
export interface PolicyTexts {
  readonly policy: unknown
  readonly appPolicies?: readonly AppPolicyText[]
}

export interface CompiledPolicies {
  /** For the requests of apps that have none. */
  readonly policy: Policy
  /** For the requests of each app that has one, with the rules of the organisation around its own. */
  readonly appPolicies: ReadonlyMap<string, Policy>
}

export function compiledPolicies(
  { policy, appPolicies = [] }: PolicyTexts,
  names: SoftwareNames | null,
): CompiledPolicies {
  const organisation = parseAcceptedPolicy(policy, { names })
  const compiled = appPolicies.map(
    (each) => [each.app, policyOfApp(organisation, ownPolicy(each, names))] as const,
  )
  return { policy: organisation, appPolicies: new Map(compiled) }
}

/** Compiles the policies of one Snapshot after the other, and each of them only if it has changed. */
export class PolicyCompiler {
  readonly #compiled: (policy: Policy) => Policy
  #names: SoftwareNames | null = null
  #organisation: { readonly text: string; readonly policy: Policy } | null = null
  #apps: ReadonlyMap<string, CompiledApp> = new Map()

  /** `hasSources`: whether the policies are read again, as for publishing, and not only applied. */
  constructor(hasSources = false) {
    this.#compiled = hasSources ? (policy) => policy : withoutSources
  }

  /** Lets other work go on meanwhile. Rejects with a Fault if a policy is invalid, and keeps what it had. */
  async compile(
    { policy, appPolicies = [] }: PolicyTexts,
    names: SoftwareNames | null,
  ): Promise<CompiledPolicies> {
    const isSame = names === this.#names
    const text = JSON.stringify(policy)
    const organisation =
      isSame && this.#organisation?.text === text
        ? this.#organisation
        : { text, policy: this.#compiled(parseAcceptedPolicy(policy, { names })) }
    const apps = new Map<string, CompiledApp>()
    const turns = new Turns()
    for (const each of appPolicies) {
      const known = isSame ? this.#apps.get(each.app) : undefined
      const own = known?.text === each.document ? known.own : this.#compiled(ownPolicy(each, names))
      const isKnown = own === known?.own && organisation === this.#organisation
      const layered = isKnown ? known!.policy : policyOfApp(organisation.policy, own)
      apps.set(each.app, { text: each.document, own, policy: layered })
      await turns.pause()
    }
    this.#names = names
    this.#organisation = organisation
    this.#apps = apps
    const compiled = [...apps].map(([app, found]) => [app, found.policy] as const)
    return { policy: organisation.policy, appPolicies: new Map(compiled) }
  }
}

interface CompiledApp {
  readonly text: string
  readonly own: Policy
  readonly policy: Policy
}

/** Rejects with a Fault if a policy is invalid. `before`: the document that was checked last. */
export async function checkPolicies(
  { policy, appPolicies = [] }: PolicyTexts,
  before: PolicyTexts | null,
): Promise<void> {
  parseAcceptedPolicy(policy)
  const checked = new Map(before?.appPolicies?.map(({ app, document }) => [app, document]))
  const turns = new Turns()
  for (const each of appPolicies) {
    if (checked.get(each.app) !== each.document) ownPolicy(each, null)
    await turns.pause()
  }
}

/** The policies as a difference: an empty document stands for one that is as in `before`. */
export function changedPolicies(
  policies: readonly AppPolicyText[],
  before: readonly AppPolicyText[],
): readonly AppPolicyText[] {
  const known = new Map(before.map(({ app, document }) => [app, document]))
  return policies.map((each) => (known.get(each.app) === each.document ? { ...each, document: '' } : each))
}

/** The policies of a difference. */
export function wholePolicies(
  changed: readonly AppPolicyText[],
  before: readonly AppPolicyText[],
): readonly AppPolicyText[] {
  const known = new Map(before.map((each) => [each.app, each]))
  return changed.map((each) => (each.document === '' ? (known.get(each.app) ?? each) : each))
}

/**
 * Reads the policies of one package after the other, as bytes of a JSON list. What did not change is not parsed again, so that
 * each text is in memory once.
 */
export class AppPolicyReader {
  readonly #app: string | null
  /** By the hash of its bytes. */
  #known: ReadonlyMap<string, AppPolicyText> = new Map()

  /** `app`: policies of other apps are passed over. `null`: all are read. */
  constructor(app: string | null) {
    this.#app = app
  }

  /** Lets other work go on meanwhile. Rejects with a Fault or a SyntaxError if one is invalid. */
  async read(bytes: Uint8Array, list: ByteRange): Promise<readonly AppPolicyText[]> {
    const found = new Map<string, AppPolicyText>()
    const turns = new Turns()
    for (const { start, end } of itemRanges(bytes, list)) {
      const item = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start)
      if (this.#isWanted(item)) {
        const digest = hash('sha256', item)
        found.set(digest, this.#known.get(digest) ?? parsedText(item))
      }
      await turns.pause()
    }
    this.#known = found
    return [...found.values()]
  }

  #isWanted(item: Buffer): boolean {
    if (this.#app === null) return true
    // All versions write the app first.
    const [, app] = APP.exec(item.toString('latin1', 0, APP_LENGTH_MAX)) ?? []
    return app === undefined || app === this.#app
  }
}

function parsedText(item: Buffer): AppPolicyText {
  const value: unknown = JSON.parse(item.toString())
  if (isAppPolicy(value)) return value
  throw new Fault('SNAPSHOT_INVALID', 'a Snapshot has an invalid policy of an app')
}

export function areAppPolicies(value: unknown): value is readonly AppPolicyText[] {
  return Array.isArray(value) && value.length <= APPS_MAX + 1 && value.every(isAppPolicy)
}

function isAppPolicy(value: unknown): value is AppPolicyText {
  const { app, document } = (value ?? {}) as Record<string, unknown>
  return isSlug(app) && typeof document === 'string'
}

function ownPolicy({ app, document }: AppPolicyText, names: SoftwareNames | null): Policy {
  try {
    return parseAcceptedPolicy(JSON.parse(document), { of: 'app', names })
  } catch (error) {
    const { message } = error as Error
    const code = error instanceof DocumentFault ? error.code : 'SNAPSHOT_INVALID'
    throw new Fault(code, `the policy of the app "${app}": ${message}`, { cause: error })
  }
}

/** Lets other work go on after each stretch of work. */
class Turns {
  #endsMs = performance.now() + TURN_MS

  async pause(): Promise<void> {
    if (performance.now() < this.#endsMs) return
    await nextTurn()
    this.#endsMs = performance.now() + TURN_MS
  }
}

/** A slug, so that a damaged one is parsed and refused. */
const APP = /^\{"app":"([a-z0-9-]+)"/
const APP_LENGTH_MAX = 80
/** The longest time that a request waits. */
const TURN_MS = 5
