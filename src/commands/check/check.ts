import { Document, isNode } from 'yaml'
import type { ParsedConfig } from '../../config/config.ts'
import { nameOf } from '../../config/source.ts'
import { Fault } from '../../shared/fault.ts'
import { USAGE } from '../../terminal/arguments.ts'
import { explainRequest } from './check-explain.ts'
import { replaySightings } from './check-replay.ts'
import type { Action, Arguments, ExitCode } from '../../terminal/command.ts'
import { CONFIG_OPTIONS } from '../../terminal/config-options.ts'
import { type ConfigReport, configReport } from './config-report.ts'
import type { Io } from '../../terminal/io.ts'

export const check: Action = {
  name: 'check',
  summary: 'Check a configuration and show what is in force',
  description: [
    'Takes the flags of "up" and reads the same file and the same variables, then the policy, signatures, weights, ' +
      'certificates and keys they name. Prints all that is wrong, and where (exit code 1), or the configuration in force: each value with ' +
      'who gave it, secrets redacted. What is allowed and risky is said on standard error.',
    'With --explain: what becomes of one request, which rules hold, and why not. The file is JSON or YAML: method, host, ' +
      'path, http (1.1 or 2), address, headers (a mapping, or a list of [name, value]), ja4, ja4h, stable, http2, hello ' +
      '(not-tls, malformed), and verdict (kind, agent, software, confidence, verified, signer, evidence); all are optional. ' +
      'Without a verdict it is made of the rest, as for the first request of a connection, by the signatures that come ' +
      'with Gatehouse and those of the configuration, and shown with its evidence: give all headers in their order. ' +
      'Without http it is 2 where ja4 or http2 say so. The policy is the one --policy names, or the configuration.',
    'With --replay: what the policy would have done to the Sightings in a file (see the setting sightings.file), against ' +
      'what was done, or against another policy: what changes, for whom, and which rules cannot be judged, as Sightings ' +
      'keep no headers but User-Agent, and no queries.',
    'config/README.md has every setting.',
  ],
  operands: [],
  options: [
    ...CONFIG_OPTIONS,
    {
      name: 'explain',
      value: 'FILE',
      description: 'Say what the policy does to the request in FILE, and why',
    },
    {
      name: 'replay',
      value: 'FILE',
      description: 'Say what the policy would change of the Sightings in FILE',
    },
    { name: 'against', value: 'FILE', description: 'The policy it is compared with; without, what was done' },
    { name: 'json', description: 'Print JSON' },
  ],
  examples: [
    { command: 'check --config gatehouse.yaml', description: 'Before a restart' },
    { command: 'check --upstream http://127.0.0.1:3000', description: 'Every default' },
    { command: 'check --explain request.json --policy policy.yaml', description: 'Why a request is blocked' },
    {
      command: 'check --replay sightings.jsonl --policy new.yaml --against old.yaml',
      description: 'Who would notice a change',
    },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const request = given.value('explain')
  const sightings = given.value('replay')
  if (request !== null && sightings !== null) throw new Fault(USAGE, 'either --explain or --replay')
  if (sightings === null && given.value('against') !== null)
    throw new Fault(USAGE, '--against goes with --replay')
  if (request !== null) return explainRequest(request, given, io)
  if (sightings !== null) return replaySightings(sightings, given, io)
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
