import { loadConfig } from '../config/config.ts'
import type { SoftwareNames } from '../classify/known/software-names.ts'
import { ConfigFault, parsePolicyText, type Problem } from '../config/source.ts'
import { Fault } from '../shared/fault.ts'
import { type Policy, parsePolicy } from '../policy/policy.ts'
import type { Arguments } from '../terminal/command.ts'
import { configFlags } from '../terminal/config-options.ts'
import type { Io } from '../terminal/io.ts'
import { unreadable } from '../terminal/unreadable.ts'
import { readBounded } from '../shared/bounded-file.ts'

interface NamedPolicy {
  /** The file, or a description if no file is given. */
  readonly name: string
  readonly policy: Policy
  readonly warnings: readonly Problem[]
}

export function sayWarnings(io: Io, { warnings }: NamedPolicy): void {
  for (const { where, what } of warnings) io.stderr.write(`warning: ${where}: ${what}\n`)
}

/** The policy from `--policy` or from the configuration. Without either, the policy that tags everything. */
export async function givenPolicy(given: Arguments, io: Io, names: SoftwareNames): Promise<NamedPolicy> {
  const file = given.value('policy')
  if (file !== null) return policyIn(file, null, names)
  const isConfigured = given.value('config') !== null || Object.keys(io.env).some(isSetting)
  if (!isConfigured) return TAG_ALL
  const { config } = loadConfig(configFlags(given), given.value('config'), io.env)
  if (config.policy.file === null) return TAG_ALL
  return policyIn(
    config.policy.file,
    config.proxy.upstreams.map(({ name }) => name),
    names,
  )
}

export async function policyIn(
  file: string,
  upstreams: readonly string[] | null,
  names: SoftwareNames,
): Promise<NamedPolicy> {
  const { policy, warnings } = parsePolicyText(await textIn(file), file, upstreams, names)
  return { name: file, policy, warnings }
}

/** Throws a Fault that names the file. */
export async function textIn(file: string): Promise<string> {
  const bytes = await readBounded(file).catch((error) => {
    throw new Fault('UNREADABLE', `${file}: ${unreadable(error).message}`, { cause: error })
  })
  return decodedText(bytes, file)
}

/** `name`: where the bytes come from, for the Fault. */
export function decodedText(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new ConfigFault([{ where: name, what: 'is not UTF-8 text' }])
  }
}

function isSetting(name: string): boolean {
  return name.startsWith('GATEHOUSE_')
}

const TAG_ALL: NamedPolicy = {
  name: 'no policy: everything is tagged',
  policy: parsePolicy({}),
  warnings: [],
}
