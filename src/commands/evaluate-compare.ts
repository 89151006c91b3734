import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Comparison, RowChange, RowVerdict } from '../classify/measure/comparison.ts'
import type { Evaluation, Miss } from '../classify/measure/evaluation.ts'
import { truthOf } from '../classify/measure/truth.ts'
import { Fault } from '../shared/fault.ts'
import { type Column, renderTable } from '../terminal/table.ts'
import { unreadable } from '../terminal/unreadable.ts'

/** What another release says of the same recordings. */
export interface OtherRelease {
  /** `null`: a release that does not say which it is. */
  readonly release: string | null
  readonly brier: number
  readonly ece: number
  readonly verdicts: readonly RowVerdict[]
}

type Saved = Omit<Evaluation, 'verdicts'> & {
  readonly release?: string
  readonly verdicts?: Evaluation['verdicts']
}

/**
 * The verdicts of another release: what its `evaluate --json` printed, or a folder with its package, whose code,
 * signatures and weights then judge the same files. `ours`: the same connections as this release has them.
 */
export async function otherRelease(
  path: string,
  argv: readonly string[],
  ours: Evaluation['verdicts'],
): Promise<OtherRelease> {
  const isFolder = (await statOf(path)).isDirectory()
  const text = isFolder ? await evaluatedBy(programIn(path), argv) : await readFile(path, 'utf8')
  const saved = parsed(path, text)
  const { release = null, brier, ece } = saved
  return { release, brier, ece, verdicts: saved.verdicts ?? verdictsFrom(saved.misses, ours) }
}

/** A release from before there were `verdicts` names its misses only: everything else was right. */
function verdictsFrom(misses: readonly Miss[], ours: Evaluation['verdicts']): readonly RowVerdict[] {
  const missed = new Map<string, Miss[]>()
  for (const miss of misses) missed.set(keyOf(miss), [...(missed.get(keyOf(miss)) ?? []), miss])
  return ours.flatMap(({ id, client, label }): RowVerdict[] => {
    const miss = missed.get(keyOf({ id, client }))?.shift()
    if (miss !== undefined) {
      const { verdict, confidence, software } = miss
      return [{ id, client, label, verdict, confidence, software }]
    }
    const truth = truthOf(label)
    return truth === null ? [] : [{ id, client, label, verdict: truth, confidence: null }]
  })
}

function keyOf({ id, client }: { readonly id: string; readonly client: string }): string {
  return JSON.stringify([id, client])
}

async function statOf(path: string) {
  try {
    return await stat(path)
  } catch (error) {
    throw new Fault('UNREADABLE', `${path}: ${unreadable(error).message}`, { cause: error })
  }
}

/** The program of a package, of a folder with an installed package, or of a checkout. */
function programIn(folder: string): string {
  const places = ['dist/bin.js', 'node_modules/gatehouse/dist/bin.js', 'src/bin.js']
  const found = places.map((place) => resolve(join(folder, place))).find((path) => existsSync(path))
  if (found !== undefined) return found
  throw new Fault(
    'NO_RELEASE',
    `${folder}: contains no release of Gatehouse: install one there with npm install --prefix ${folder} PACKAGE`,
  )
}

async function evaluatedBy(program: string, argv: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [program, 'evaluate', '--json', ...argv], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const parts: Buffer[] = []
  const faults: Buffer[] = []
  child.stdout.on('data', (part: Buffer) => parts.push(part))
  child.stderr.on('data', (part: Buffer) => faults.push(part))
  const code = await new Promise<number | null>((done, fail) => {
    child.once('error', fail).once('close', done)
  })
  // 1: some lines are no rows, which this release has said, too.
  if (code === 0 || code === 1) return Buffer.concat(parts).toString()
  throw new Fault(
    'RELEASE_FAILED',
    `${program}: exit code ${code}: ${Buffer.concat(faults).toString().trim()}`,
  )
}

function parsed(path: string, text: string): Saved {
  try {
    const saved = JSON.parse(text) as Saved
    if (Array.isArray(saved.misses)) return saved
  } catch {
    // The same fault as for other JSON.
  }
  throw new Fault(
    'NO_EVALUATION',
    `${path}: is not what evaluate --json prints; if it is a package, install it with npm install --prefix FOLDER ${path}, and name FOLDER`,
  )
}

export function comparisonReport(
  { labels, changes, unmatched }: Comparison,
  other: OtherRelease,
  ours: Pick<Evaluation, 'brier' | 'ece'>,
): string {
  const titles = ['label', 'n', 'right before', 'right now', 'worse', 'better', 'other']
  const columns = titles.map((title, i): Column => (i === 0 ? { title } : { title, align: 'right' }))
  const rows = Object.entries(labels)
    .sort()
    .map(([label, each]) =>
      [label, each.n, each.right_before, each.right, each.worse, each.better, each.other].map(String),
    )
  const parts = [
    `Compared with ${other.release ?? 'a release without a number'}:\n`,
    `${renderTable(columns, rows, Number.POSITIVE_INFINITY).join('\n')}\n`,
    `Brier ${other.brier} before, ${ours.brier} now; expected calibration error ${other.ece} before, ${ours.ece} now\n`,
  ]
  if (unmatched > 0) parts.push(`${unmatched} connections have a verdict of one release only\n`)
  for (const [change, title] of TITLES) {
    const lines = changes.filter((each) => each.change === change).map(lineOf)
    if (lines.length > 0) parts.push(`${title}:\n${lines.join('')}`)
  }
  return parts.join('\n')
}

function lineOf({ id, client, label, before, after }: RowChange): string {
  return `  ${id} ${client} (${label}): ${shown(before)} before, ${shown(after)} now\n`
}

function shown({ verdict, confidence, software }: RowChange['before']): string {
  const named = software === undefined || software === null ? '' : ` ${software}`
  return `${verdict}${named}${confidence === null ? '' : ` ${confidence}`}`
}

const TITLES = [
  ['worse', 'Right before, wrong now'],
  ['better', 'Wrong before, right now'],
  ['other', 'Otherwise changed'],
] as const
