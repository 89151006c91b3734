import { createReadStream } from 'node:fs'
import { compareVerdicts } from '../classify/measure/comparison.ts'
import type { CorpusRow } from '../classify/known/corpus.ts'
import {
  type Evaluation,
  evaluate as evaluateAll,
  type Judgement,
  judgeRows,
} from '../classify/measure/evaluation.ts'
import type { Knowledge } from '../classify/known/knowledge.ts'
import { Fault } from '../shared/fault.ts'
import { version } from '../shared/package-files.ts'
import type { CommandAction, Arguments, ExitCode } from '../terminal/command.ts'
import { readCorpus } from './record/corpus-file.ts'
import { comparisonReport, otherRelease } from './evaluate-compare.ts'
import { crossValidate, fitTo, weightsDocument } from './fitting.ts'
import type { Io } from '../terminal/io.ts'
import { ja4plusFrom } from '../runtime/ja4plus-setting.ts'
import { Progress } from '../terminal/progress.ts'
import { loadKnowledge } from '../runtime/signatures/knowledge-files.ts'
import { writeWhole } from './signatures/signatures-feed.ts'
import { type Column, renderTable } from '../terminal/table.ts'
import { unreadable } from '../terminal/unreadable.ts'

/** `gatehouse evaluate`: measures verdict quality on connections of known clients. */
export const evaluate: CommandAction = {
  name: 'evaluate',
  summary: 'Measure the verdicts on recorded connections of known clients',
  description: [
    'Reads a corpus (JSON lines, as `gatehouse record` writes them) and classifies each connection, up to its last request, with the code that classifies traffic. For each label it counts the verdicts (agent, automation, human, unknown), the connections that were named correctly, and those found to be spoofed browsers. Connections without a request are counted separately.',
    '"says" counts connections that name their client: a header other than Host, Origin, Referer and cookies contains a name of the client, as the recording or the signatures have it, without words such as SDK, client and Python at its ends. "so named" counts those of them that were named correctly. An automated browser leaves a mark if it differs from every recorded person with the same browser and version: the word headless, another TLS hello or HTTP/2 opening, a missing header, another header order, another placeholder in sec-ch-ua. Both counts are independent of the verdict.',
    '"Brier" and "expected calibration error" measure how well the confidence of verdicts matches their accuracy; 0 is best. The table below them compares, for each verdict, the confidence that was said with how often it was right.',
    '--compare names another release: a file with what its `evaluate --json` printed, a folder in which its package is installed (`npm install --prefix FOLDER PACKAGE`), or a checkout. That release judges the same files with its own code, signatures and weights (and --folds, if given); --signatures and --weights are of this release. The report then shows, for each label, how many connections were right before and are right now, and lists every connection whose verdict or name changed. The exit code is 1 if one that was right is wrong now.',
    '--folds cross-validates: it splits the clients into N groups and classifies each group with weights fitted to the others, without what was measured on its own clients (fingerprints, and words and headers that are not published). --fit writes weights fitted to all rows, for the setting weights.file.',
  ],
  operands: [{ name: 'FILE', description: 'A corpus in JSON lines', many: true }],
  options: [
    { name: 'json', description: 'Print one JSON object' },
    {
      name: 'signatures',
      value: 'PATH',
      description: 'Signatures to use instead of the built-in ones; may be repeated',
    },
    {
      name: 'weights',
      value: 'FILE',
      description: 'Weights of the evidence to use instead of the built-in ones',
    },
    { name: 'folds', value: 'N', description: 'Cross-validate by client, in N groups' },
    {
      name: 'compare',
      value: 'RELEASE',
      description: 'Show what changed since another release: its folder, or what its --json printed',
    },
    { name: 'fit', value: 'FILE', description: 'Fit weights to the corpus, and write them to FILE' },
  ],
  examples: [
    { command: 'evaluate clients.jsonl', description: 'Counts by label, and misclassified connections' },
    { command: 'evaluate clients.jsonl --folds 10', description: 'The same, cross-validated' },
    {
      command: 'evaluate clients.jsonl --compare before.json',
      description: 'What changed since `evaluate clients.jsonl --json > before.json`',
    },
    { command: 'evaluate clients.jsonl --fit weights.json', description: 'Fit new weights' },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const folds = given.value('folds') === null ? null : Number(given.value('folds'))
  if (folds !== null && !(Number.isInteger(folds) && folds >= 2 && folds <= 1000)) {
    io.stderr.write('--folds must be a whole number from 2 to 1000\n')
    return 2
  }
  const signatures = given.values('signatures')
  const knowledge = await loadKnowledge(signatures.length === 0 ? null : signatures, given.value('weights'))
  const { rows, refused } = await readAll(given.operands, io)
  const fitFile = given.value('fit')
  if (fitFile !== null) await writeWhole(fitFile, weightsDocument(fitTo(knowledge.list, rows), rows))
  const judgements = folds === null ? judged(knowledge, rows) : heldBack(knowledge, rows, folds, io)
  const evaluation = evaluateAll(judgements, rows.filter(({ requests }) => requests.length === 0).length)
  const compared = await comparedWith(given, evaluation)
  if (given.flag('json')) {
    const comparison = compared === null ? {} : { comparison: compared.json }
    io.stdout.write(`${JSON.stringify({ release: version(), ...evaluation, ...comparison })}\n`)
  } else io.stdout.write(compared === null ? report(evaluation) : compared.report)
  return refused === 0 && !compared?.isWorse ? 0 : 1
}

async function comparedWith(given: Arguments, evaluation: Evaluation) {
  const path = given.value('compare')
  if (path === null) return null
  const folds = given.value('folds')
  const argv = [...(folds === null ? [] : ['--folds', folds]), '--', ...given.operands]
  const other = await otherRelease(path, argv, evaluation.verdicts)
  const comparison = compareVerdicts(other.verdicts, evaluation.verdicts)
  const { release, brier, ece } = other
  return {
    json: { release, brier, ece, ...comparison },
    report: comparisonReport(comparison, other, evaluation),
    isWorse: comparison.changes.some(({ change }) => change === 'worse'),
  }
}

function heldBack(
  { list }: Knowledge,
  rows: readonly CorpusRow[],
  folds: number,
  io: Io,
): readonly Judgement[] {
  const progress = new Progress(io)
  const judgements = crossValidate(list, rows, folds, (done, all) =>
    progress.draw(done, all, `${all} groups`),
  )
  progress.clear()
  return judgements
}

async function readAll(paths: readonly string[], io: Io): Promise<{ rows: CorpusRow[]; refused: number }> {
  const rows: CorpusRow[] = []
  let refused = 0
  for (const path of paths) {
    try {
      const refuse = (number: number, fault: Fault) => {
        refused++
        io.stderr.write(`${path}:${number}: ${fault.message}\n`)
      }
      const found = readCorpus(createReadStream(path), refuse, ja4plusFrom(io.env))
      for await (const { row } of found) rows.push(row)
    } catch (error) {
      if (error instanceof Fault) throw error
      throw new Fault('UNREADABLE', `${path}: ${unreadable(error).message}`, { cause: error })
    }
  }
  return { rows, refused }
}

function judged(knowledge: Knowledge, rows: readonly CorpusRow[]): readonly Judgement[] {
  return judgeRows(knowledge, rows)
}

function report(evaluation: Evaluation): string {
  const { connections, without_requests, labels, brier, ece, misses } = evaluation
  const parts = [
    `${connections} connections; ${without_requests} more without a request\n`,
    table(
      ['label', 'n', 'agent', 'automation', 'human', 'unknown', 'named', 'says', 'so named', 'spoofed'],
      Object.entries(labels)
        .sort()
        .map(([label, each]) =>
          [
            label,
            each.n,
            each.agent,
            each.automation,
            each.human,
            each.unknown,
            each.named,
            each.self_named,
            each.self_named_right,
            each.spoof_flagged,
          ].map(String),
        ),
    ),
    shares(labels),
    `Brier ${brier}, expected calibration error ${ece}\n`,
    table(
      ['verdict', 'confidence', 'n', 'said', 'right'],
      [
        ...Object.entries(evaluation.reliability_by_verdict),
        ['all', evaluation.reliability] as const,
      ].flatMap(([verdict, bins]) =>
        bins.map(({ from, to, n, confidence, right }) =>
          [verdict, `${from} to ${to}`, n, confidence, right].map(String),
        ),
      ),
    ),
  ]
  if (misses.length > 0) {
    parts.push('Not what they are:\n')
    const lines = misses.map(
      ({ id, client, label, verdict, confidence, evidence }) =>
        `  ${id} ${client} (${label}): ${verdict} ${confidence}; ${evidence.join(' ')}\n`,
    )
    parts.push(...lines.slice(0, MISSES_SAID_MAX))
    if (lines.length > MISSES_SAID_MAX) parts.push(`  and ${lines.length - MISSES_SAID_MAX} more\n`)
  }
  return parts.join('\n')
}

/** Shares that do not fit into one line of the table. */
function shares(labels: Evaluation['labels']): string {
  const named = SELF_NAMING.map((name) => labels[name]).filter((counts) => counts !== undefined)
  const says = sum(named.map(({ self_named }) => self_named))
  const right = sum(named.map(({ self_named_right }) => self_named_right))
  const { n = 0, agent = 0, marked = 0, marked_agent = 0, incomparable = 0 } = labels['browser-agent'] ?? {}
  const unmarked = n - marked - incomparable
  return [
    `${SELF_NAMING.join(', ')}: of ${says} that say who they are, ${share(right, says)} named so\n`,
    `browser-agent: of ${marked} that leave a mark, ${share(marked_agent, marked)} called agent;`,
    ` of ${unmarked} that leave none${incomparable === 0 ? '' : ` and ${incomparable} that nothing was recorded to compare with`},`,
    ` ${agent - marked_agent}\n`,
  ].join('')
}

function share(part: number, whole: number): string {
  return whole === 0 ? `${part}` : `${part} (${Math.round((1000 * part) / whole) / 10} %)`
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

/** The first column is text, the others are numbers. */
function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const columns = titles.map((title, index): Column => (index === 0 ? { title } : { title, align: 'right' }))
  return `${renderTable(columns, rows, Number.POSITIVE_INFINITY).join('\n')}\n`
}

/** Labels of programs that act on their own and usually name themselves. */
const SELF_NAMING = ['llm-sdk', 'orchestrator', 'mcp-client', 'crawler'] as const
const MISSES_SAID_MAX = 100
