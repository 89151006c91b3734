import { DEFAULT_APP } from '../../apps/app.ts'
import { AppIndex } from '../../apps/app-index.ts'
import type { SoftwareNames } from '../../classify/known/software-names.ts'
import { loadConfig, type StartupConfig } from '../../config/config.ts'
import type { Problem } from '../../config/source.ts'
import type { PolicyFor } from '../../plane/replay.ts'
import { type Policy, parsePolicy, type PolicyReading, policyOfApp } from '../../policy/policy.ts'
import { textIn, parsePolicyText } from '../../runtime/policy-source.ts'
import { didYouMean } from '../../shared/did-you-mean.ts'
import { Fault } from '../../shared/fault.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { Arguments } from '../../terminal/command.ts'
import { configFlags } from '../../terminal/config-options.ts'
import type { Io } from '../../terminal/io.ts'
import { type AppFile, readAppFile } from '../apps/app-file.ts'

interface NamedPolicy {
  /** The file, or a description if no file is given. */
  readonly name: string
  readonly policy: Policy
  readonly warnings: readonly Problem[]
}

/** The policies for `--explain` and `--replay`. */
export interface GivenPolicies extends NamedPolicy {
  /** The app that `--app` names. */
  readonly app: string | null
  /** Finds the app of a request. */
  readonly index: AppIndex
  /** What the requests of an app get with this policy of the organisation. */
  with(organisation: Policy): PolicyFor
}

/** From `--policy`, `--apps` and `--app`, or from the configuration. Without a policy, everything is tagged. */
export async function givenPolicies(given: Arguments, io: Io, names: SoftwareNames): Promise<GivenPolicies> {
  const config = configOf(given, io)
  const named = await policyGiven(given, config, names)
  const file = given.value('apps')
  const { apps, policies }: AppFile =
    file === null ? { apps: config?.apps ?? [], policies: new Map() } : await readAppFile(file)
  const app = given.value('app')
  const known = new Set([DEFAULT_APP, ...apps.map(({ id }) => id), ...policies.keys()])
  const fixed = config?.proxy.app ?? null
  if (fixed !== null) known.add(fixed)
  if (app !== null && !known.has(app))
    throw new Fault(
      USAGE,
      `--app: unknown app "${app}"${didYouMean(app, [...known])}; --apps FILE names apps`,
    )
  const own = new Map(
    [...policies].map(([id, document]) => [id, parsePolicy(document, { of: 'app', names })]),
  )
  const layered = (organisation: Policy): PolicyFor => {
    const byApp = new Map([...own].map(([id, policy]) => [id, policyOfApp(organisation, policy)]))
    return (id) => (id === null ? undefined : byApp.get(id)) ?? organisation
  }
  return { ...named, app, index: new AppIndex(apps, fixed), with: layered }
}

export function sayWarnings(io: Io, { warnings }: NamedPolicy): void {
  for (const { where, what } of warnings) io.stderr.write(`warning: ${where}: ${what}\n`)
}

export async function policyIn(file: string, reading: PolicyReading & { readonly names: SoftwareNames }) {
  const { policy, warnings } = parsePolicyText(await textIn(file), file, reading)
  return { name: file, policy, warnings }
}

async function policyGiven(
  given: Arguments,
  config: StartupConfig | null,
  names: SoftwareNames,
): Promise<NamedPolicy> {
  const file = given.value('policy')
  if (file !== null) return policyIn(file, { names })
  if (config === null || config.policy.file === null) return TAG_ALL
  const { policy, proxy, bus } = config
  const upstreams = proxy.upstreams.map(({ name }) => name)
  const known = { upstreams, payments: config.payments.terms, names }
  // The managers send the rules of the organisation.
  if (bus.urls.length === 0 || proxy.app === null) return policyIn(policy.file!, known)
  const own = await policyIn(policy.file!, { of: 'app', ...known })
  return { ...own, policy: policyOfApp(TAG_ALL.policy, own.policy) }
}

/** `null`: nothing is configured. With `--policy`, variables are of no use alone, and need not be complete. */
function configOf(given: Arguments, io: Io): StartupConfig | null {
  const isConfigured =
    given.value('config') !== null || (given.value('policy') === null && Object.keys(io.env).some(isSetting))
  return isConfigured ? loadConfig(configFlags(given), given.value('config'), io.env).config : null
}

function isSetting(name: string): boolean {
  return name.startsWith('GATEHOUSE_')
}

const TAG_ALL: NamedPolicy = {
  name: 'no policy: everything is tagged',
  policy: parsePolicy({}),
  warnings: [],
}
