import type { StartupConfig } from '../../config/config.ts'
import type { CommandAction, Arguments, ExitCode } from '../../terminal/command.ts'
import { CONFIG_OPTIONS } from '../../terminal/config-options.ts'
import { type ConfigReport, configReport } from '../check/config-report.ts'
import { wrap } from '../../terminal/help.ts'
import { type Io, paint } from '../../terminal/io.ts'
import { visible } from '../../terminal/table.ts'
import { lookAtBus, lookAtStore } from './engines.ts'
import { lookAtCertificates, lookAtDataFolder } from './files.ts'
import { lookAtFirstSnapshot } from './first-snapshot.ts'
import { bad, type CheckResult, good, skipped, type State, warning } from './finding.ts'
import { lookAtMachine } from './machine.ts'
import { lookAtPorts } from './ports.ts'
import { lookAtUpstreams } from './upstreams.ts'

type Role = (typeof ROLES)[number]

const ROLES = ['up', 'proxy', 'manage'] as const

export const doctor: CommandAction = {
  name: 'doctor',
  summary: 'Check everything that a gateway needs, and say what to do',
  description: [
    'Takes the same flags, variables and configuration file as "up". Checks the configuration and the files it names, ' +
      'the ports, certificates and their expiry, the clock, the data folder and its free space, the database, NATS, the ' +
      'upstreams, and the limits of the process. Changes nothing: a database is opened as it is, and an upstream gets ' +
      'one HEAD request for /.',
    'Also works while the gateway runs and uses its ports. Exit code 1 if something is bad. A warning works now and will ' +
      'cause trouble later.',
  ],
  operands: [],
  options: [
    ...CONFIG_OPTIONS,
    { name: 'role', value: 'ROLE', description: 'What runs here', choices: ROLES, default: 'up' },
    { name: 'json', description: 'Print JSON' },
  ],
  examples: [
    { command: 'doctor --upstream http://127.0.0.1:3000', description: 'Before the first start' },
    { command: 'doctor --config gatehouse.yaml', description: 'When something is wrong' },
    { command: 'doctor --role proxy --config fleet.yaml', description: 'In a sidecar' },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const role = given.value('role') as Role
  const report = await configReport(given, io, role)
  const findings = [...lookAtMachine(role), ...ofConfiguration(report)]
  if (report.parsed !== null) findings.push(...(await lookAtAll(report.parsed.config, role)))
  else findings.push(skipped('the rest', 'is checked once the configuration is valid'))
  if (given.flag('json')) io.stdout.write(`${JSON.stringify({ findings }, null, 2)}\n`)
  else print(findings, io)
  return findings.some(({ state }) => state === 'bad') ? 1 : 0
}

/** Runs all checks in parallel, because targets that do not answer take time. */
async function lookAtAll(config: StartupConfig, role: Role): Promise<readonly CheckResult[]> {
  const isProxy = role !== 'manage'
  const hasStore = role !== 'proxy'
  const hasBus = config.bus.urls.length > 0
  const looks: readonly (Promise<readonly CheckResult[]> | null)[] = [
    lookAtPorts(config, role),
    isProxy ? lookAtCertificates(config) : null,
    lookAtDataFolder(config),
    hasStore ? lookAtStore(config) : null,
    hasBus ? lookAtBus(config, role === 'proxy' ? 'proxy' : 'manage') : null,
    hasBus && role === 'proxy' ? lookAtFirstSnapshot(config) : null,
    isProxy ? lookAtUpstreams(config) : null,
  ]
  return (await Promise.all(looks.filter((look) => look !== null))).flat()
}

function ofConfiguration({ problems, warnings }: ConfigReport): readonly CheckResult[] {
  const found = [
    ...problems.map(({ where, what }) =>
      bad(where, what, 'correct it: config/README.md lists every setting'),
    ),
    ...warnings.map(({ where, what }) => warning(where, what, 'see config/README.md, or leave it as it is')),
  ]
  return problems.length > 0
    ? found
    : [good('configuration', 'is valid, and so are the files it names'), ...found]
}

function print(findings: readonly CheckResult[], io: Io): void {
  for (const { about, state, what, fix } of findings) {
    const { sign, colour } = SHOWN[state]
    const text = `${visible(about)}: ${visible(what)}`
    io.stdout.write(`${paint(io, colour, sign)} ${hanging(text, 2, io.columns)}\n`)
    if (fix !== null) io.stdout.write(`  → ${hanging(fix, 4, io.columns)}\n`)
  }
  const count = (state: State) => findings.filter((each) => each.state === state).length
  io.stdout.write(`\n${count('good')} good, ${count('warning')} to look at, ${count('bad')} bad\n`)
}

/** Wraps lines to the terminal's width; all but the first are indented. */
function hanging(text: string, indent: number, columns: number): string {
  return wrap(text, Math.max(40, columns - indent)).join(`\n${' '.repeat(indent)}`)
}

const SHOWN = {
  good: { sign: '✓', colour: 'green' },
  warning: { sign: '!', colour: 'yellow' },
  bad: { sign: '✗', colour: 'red' },
  skipped: { sign: '–', colour: 'dim' },
} as const satisfies Record<State, { sign: string; colour: string }>
