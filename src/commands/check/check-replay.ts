import { createReadStream } from 'node:fs'
import { Fault } from '../../shared/fault.ts'
import { Replay, type ReplayReport, type RuleCount } from '../../plane/replay.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { parseSighting } from '../../plane/sighting-document.ts'
import type { Arguments, ExitCode } from '../../terminal/command.ts'
import { type Io, paint } from '../../terminal/io.ts'
import { lines } from '../../terminal/lines.ts'
import { givenKnowledge } from '../../runtime/signatures/knowledge-source.ts'
import { givenPolicies, policyIn, sayWarnings } from './given-policies.ts'
import { renderTable } from '../../terminal/table.ts'
import { unreadable } from '../../terminal/unreadable.ts'

/** `gatehouse check --replay`: shows what a policy would have done to recorded requests. */
export async function replaySightings(file: string, given: Arguments, io: Io): Promise<ExitCode> {
  const { names: called } = await givenKnowledge(given, io)
  const after = await givenPolicies(given, io, called)
  const against = given.value('against')
  const before = against === null ? null : await policyIn(against, { names: called })
  sayWarnings(io, after)
  const { app } = after
  const replay = new Replay(after.with(after.policy), before && after.with(before.policy), Date.now(), app)
  const bad = await read(file, (sighting) => {
    if (app === null || sighting.app === app) replay.add(sighting)
  })
  const report = replay.report()
  const names = { policy: after.name, against: before?.name ?? 'what was done' }
  for (const { line, what } of bad.first) io.stderr.write(`${file}:${line}: ${what}; left out\n`)
  if (bad.count > bad.first.length)
    io.stderr.write(`${file}: ${bad.count - bad.first.length} more lines are left out\n`)
  if (given.flag('json')) {
    io.stdout.write(`${JSON.stringify({ ...names, ...json(report), left_out: bad }, null, 2)}\n`)
  } else for (const line of text(names, report, io)) io.stdout.write(`${line}\n`)
  return report.sightings === 0 ? 1 : 0
}

interface BadLines {
  count: number
  readonly first: { readonly line: number; readonly what: string }[]
}

/** Skips and reports invalid lines: a file may end in the middle of a line. */
async function read(file: string, add: (sighting: Sighting) => void): Promise<BadLines> {
  const bad: BadLines = { count: 0, first: [] }
  let number = 0
  try {
    for await (const batch of lines(createReadStream(file), LINE_BYTES_MAX)) {
      for (const { text } of batch) {
        number++
        if (text?.trim() === '') continue
        const sighting = text === null ? `is longer than ${LINE_BYTES_MAX} bytes` : parseSighting(text)
        if (typeof sighting !== 'string') add(sighting)
        else if (++bad.count <= BAD_LINES_SAID_MAX) bad.first.push({ line: number, what: sighting })
      }
    }
  } catch (error) {
    throw new Fault('UNREADABLE', `${file}: ${unreadable(error).message}`, { cause: error })
  }
  return bad
}

function json({ bySettings, rules, ...report }: ReplayReport): object {
  return {
    ...report,
    by_settings: bySettings,
    rules: rules.map(({ onTrial, ...each }) => ({ ...each, on_trial: onTrial })),
  }
}

function text(
  { policy, against }: { readonly policy: string; readonly against: string },
  report: ReplayReport,
  io: Io,
): readonly string[] {
  const { sightings, unchanged, changed, unjudged, bySettings } = report
  const ofAll = (count: number) => (sightings === 0 ? '' : ` (${((count * 100) / sightings).toFixed(1)} %)`)
  return [
    `${policy} against ${against}`,
    `${sightings} Sightings: ${changed} changed${ofAll(changed)}, ${unchanged} unchanged, ${unjudged} that cannot be judged${
      bySettings === 0 ? '' : `, ${bySettings} decided by settings`
    }`,
    ...table(
      io,
      'What changes',
      ['FROM', 'TO', '>REQUESTS'],
      report.transitions.map(({ from, to, count }) => [from, to, String(count)]),
    ),
    ...table(io, 'Most of it, by agent', ['AGENT', 'FROM', 'TO', '>REQUESTS'], report.agents.map(shareRow)),
    ...table(io, 'Most of it, by path', ['PATH', 'FROM', 'TO', '>REQUESTS'], report.paths.map(shareRow)),
    ...table(
      io,
      'Rules',
      ['RULE', 'LAYER', '>BEFORE', '>AFTER', '>ON TRIAL'],
      report.rules.map(({ rule, layer, app, before, after, onTrial }) => [
        rule,
        layerText({ layer, app }),
        before === null ? '-' : String(before),
        after === null ? '-' : String(after),
        onTrial === 0 ? '' : String(onTrial),
      ]),
    ),
    ...table(
      io,
      'Rules that ask for what Sightings do not keep, and the requests for which that counts',
      ['POLICY', 'RULE', 'LAYER', 'ASKS FOR', '>REQUESTS'],
      report.open.map(({ policy: of, rule, layer, app, needs, sightings: count }) => [
        of,
        rule,
        layerText({ layer, app }),
        needs.join(', '),
        String(count),
      ]),
    ),
    ...(report.transitions.some(isLimit)
      ? ['', 'Whether a client would go over a limit is not replayed.']
      : []),
  ]
}

function layerText({ layer, app }: Pick<RuleCount, 'layer' | 'app'>): string {
  return app === null ? layer : `app ${app}`
}

function isLimit({ from, to }: { readonly from: string; readonly to: string }): boolean {
  return from.startsWith('rate_limit') || to.startsWith('rate_limit')
}

function shareRow({ name, from, to, count }: ReplayReport['agents'][number]): readonly string[] {
  return [name, from, to, String(count)]
}

/** Empty without rows. A title with `>` is right-aligned. */
function table(
  io: Io,
  title: string,
  titles: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  if (rows.length === 0) return []
  const columns = titles.map((each, index) => ({
    title: each.replace('>', ''),
    ...(each.startsWith('>') && { align: 'right' as const }),
    ...(index === 0 && { flexible: true as const }),
  }))
  return ['', paint(io, 'bold', title), ...renderTable(columns, rows, io.columns)]
}

const LINE_BYTES_MAX = 1024 * 1024
const BAD_LINES_SAID_MAX = 10
