import { Document, isNode } from 'yaml'
import type { ParsedConfig } from '../../config/config.ts'
import { nameOf } from '../../config/source.ts'
import { Fault } from '../../shared/fault.ts'
import { USAGE } from '../../terminal/arguments.ts'
import { explainRequest } from './check-explain.ts'
import { checkRobots } from './check-robots.ts'
import { replaySightings } from './check-replay.ts'
import type { CommandAction, Arguments, ExitCode } from '../../terminal/command.ts'
import { CONFIG_OPTIONS } from '../../terminal/config-options.ts'
import { type ConfigReport, configReport } from './config-report.ts'
import type { Io } from '../../terminal/io.ts'

export const check: CommandAction = {
  name: 'check',
  summary: 'Check a configuration and show what is in force',
  description: [
    'Takes the same flags, variables and configuration file as "up", and reads the policy, signatures, weights, ' +
      'certificates and keys that they name. Prints every problem with its place (exit code 1), or else the effective ' +
      'configuration: each value with its source, secrets redacted. Warnings about risky settings go to standard error.',
    'With --explain: shows the verdict on one request, what the policy does to it, and for each rule whether it matches ' +
      'and why. FILE is the request head as text, beginning with its request line (GET / HTTP/1.1), or what curl -v ' +
      'prints; --ja4 and --address add what a head does not show. Or FILE is JSON or YAML: method, host, path, http (1.1 ' +
      'or 2), address, headers (a mapping, or a list of [name, value]), ja4, ja4h, stable, http2, hello (not-tls, ' +
      'malformed), and verdict (kind, agent, software, confidence, verified, signer, evidence); all are optional. "-" is ' +
      'standard input. Without a verdict, the request is classified as the first of its connection, with the built-in ' +
      'signatures and those of the configuration: give all headers in their order. Without http, ja4 and http2 decide ' +
      'between 1.1 and 2. The policy comes from --policy or the configuration.',
    'With --replay: shows what the policy would have done to the Sightings in a file (setting sightings.file), compared ' +
      'with what was done or with another policy: what changes, which clients it affects, and which rules cannot be ' +
      'decided, because Sightings contain no headers except User-Agent, and no queries.',
    'With --robots: says where a robots.txt of the app and the policy contradict each other, in both directions: a crawler is ' +
      'refused what robots.txt allows, or gets what it disallows. Exit code 1 if there is anything. It is about honest crawlers, ' +
      'see "publish".',
    'With --apps: also judges with the policies of the apps in FILE, as for "apps apply", and says which layer of the policy has ' +
      'each rule: first and last of the organisation, or app. The app of a request is that of its host, or --app. With ' +
      '--replay, --app limits the Sightings to those of one app.',
    'config/README.md lists every setting.',
  ],
  operands: [],
  options: [
    ...CONFIG_OPTIONS,
    {
      name: 'explain',
      value: 'FILE',
      description: 'Explain what the policy does to the request in FILE',
    },
    { name: 'ja4', value: 'JA4', description: 'With --explain of a request head: its JA4' },
    {
      name: 'address',
      value: 'ADDRESS',
      description: 'With --explain of a request head: its client address',
    },
    {
      name: 'replay',
      value: 'FILE',
      description: 'Show what the policy would change for the Sightings in FILE',
    },
    {
      name: 'against',
      value: 'FILE',
      description: 'Another policy to compare with (default: what was done)',
    },
    {
      name: 'robots',
      value: 'FILE',
      description: 'Compare the robots.txt in FILE with the policy',
    },
    { name: 'host', value: 'HOST', description: 'With --robots: the site, if the policy tells hosts apart' },
    {
      name: 'apps',
      value: 'FILE',
      description:
        'With --explain, --replay or --robots: apps and their policies (default: the apps of the settings)',
    },
    { name: 'app', value: 'ID', description: 'With the same: the app of the requests' },
    { name: 'json', description: 'Print JSON' },
  ],
  examples: [
    { command: 'check --config gatehouse.yaml', description: 'Before a restart' },
    { command: 'check --upstream http://127.0.0.1:3000', description: 'Show every default' },
    { command: 'check --explain request.json --policy policy.yaml', description: 'Why a request is blocked' },
    {
      command: 'check --explain request.json --policy policy.yaml --apps apps.yaml --app shop',
      description: 'The same with the rules of an app',
    },
    {
      command: 'check --explain - --address 203.0.113.7 < request.http',
      description: 'A pasted request head',
    },
    {
      command: 'check --replay sightings.jsonl --policy new.yaml --against old.yaml',
      description: 'Which clients a change affects',
    },
    {
      command: 'check --robots public/robots.txt --policy policy.yaml',
      description: 'Whether crawlers are told what the policy does',
    },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const request = given.value('explain')
  const sightings = given.value('replay')
  const robots = given.value('robots')
  const asked = [request, sightings, robots].filter((each) => each !== null).length
  if (asked > 1) throw new Fault(USAGE, 'only one of --explain, --replay and --robots')
  if (sightings === null && given.value('against') !== null)
    throw new Fault(USAGE, '--against goes with --replay')
  if (request === null && (given.value('ja4') ?? given.value('address')) !== null)
    throw new Fault(USAGE, '--ja4 and --address go with --explain')
  if (robots === null && given.value('host') !== null) throw new Fault(USAGE, '--host goes with --robots')
  if (asked === 0 && (given.value('apps') ?? given.value('app')) !== null)
    throw new Fault(USAGE, '--apps and --app go with --explain, --replay or --robots')
  if (request !== null) return explainRequest(request, given, io)
  if (sightings !== null) return replaySightings(sightings, given, io)
  if (robots !== null) return checkRobots(robots, given, io)
  const report = await configReport(given, io)
  if (given.flag('json')) io.stdout.write(`${JSON.stringify(json(report), null, 2)}\n`)
  else printed(report, io)
  return report.problems.length === 0 ? 0 : 1
}

function printed({ problems, warnings, parsed }: ConfigReport, io: Io): void {
  for (const { where, what } of warnings) io.stderr.write(`warning: ${where}: ${what}\n`)
  for (const { where, what } of problems) io.stderr.write(`${where}: ${what}\n`)
  if (problems.length === 0) io.stdout.write(effectiveYaml(parsed!))
}

function json({ problems, warnings, parsed }: ConfigReport): object {
  const effective = problems.length === 0 ? (parsed?.effective ?? []) : []
  return {
    valid: problems.length === 0,
    problems,
    warnings,
    settings: effective.map(({ pointer, value, from }) => ({ name: nameOf(pointer), value, from })),
  }
}

/** The effective settings as an equivalent file, with the source of each value in a comment. */
function effectiveYaml({ effective }: ParsedConfig): string {
  const document = new Document({})
  for (const { pointer, value, from } of effective) {
    const path = pointer
      .slice(1)
      .split('/')
      .map((token) => (/^\d+$/.test(token) ? Number(token) : token))
    const node = document.createNode(value, { flow: true })
    if (isNode(node)) node.comment = ` ${from}`
    for (let depth = 1; depth < path.length; depth++) {
      const around = path.slice(0, depth)
      if (!document.hasIn(around))
        document.setIn(around, document.createNode(typeof path[depth] === 'number' ? [] : {}))
    }
    document.setIn(path, node)
  }
  return document.toString({ lineWidth: 0 })
}
