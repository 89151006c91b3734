import { createReadStream } from 'node:fs'
import type { CorpusRow } from '../classify/corpus.ts'
import { type Evaluation, evaluate as evaluateAll, type Judgement, judgeRow } from '../classify/evaluation.ts'
import type { Knowledge } from '../classify/knowledge.ts'
import { Fault } from '../fault.ts'
import type { Action, Arguments, ExitCode } from './command.ts'
import { readCorpus } from './corpus-file.ts'
import { crossValidate, fitTo, weightsDocument } from './fitting.ts'
import type { Io } from './io.ts'
import { ja4plusFrom } from './ja4plus-setting.ts'
import { loadKnowledge } from './knowledge-files.ts'
import { writeWhole } from './signatures-feed.ts'
import { type Column, renderTable } from './table.ts'
import { unreadable } from './unreadable.ts'

/** `gatehouse evaluate`: how good the verdicts are, on connections of clients that are known. */
export const evaluate: Action = {
  name: 'evaluate',
  summary: 'Measure the verdicts on recorded connections of known clients',
  description: [
    'Reads a corpus (JSON lines, as `gatehouse record` writes them), judges each connection by all it shows up to its last request, with the code that judges traffic, and counts what was said of whom: for each label agents, automation, people, unknown ones, those that were named rightly and those whose claim to be a browser was found false. Connections on which no request was sent are counted apart.',
    '"Brier" and "expected calibration error" say how far the confidence of verdicts can be believed; 0 is best.',
    '--folds measures on clients that were held back: the clients are dealt to so many groups, each is judged with weights fitted to the others, and without the fingerprints that were measured on its own clients. --fit writes weights fitted to all of the rows, for the setting weights.file.',
  ],
  operands: [{ name: 'FILE', description: 'A corpus in JSON lines', many: true }],
  options: [
    { name: 'json', description: 'Print one JSON object' },
    {
      name: 'signatures',
      value: 'PATH',
      description: 'Signatures to judge by, in the place of those that come with Gatehouse; repeatable',
    },
    { name: 'weights', value: 'FILE', description: 'Weights of the evidence, in the place of ours' },
    { name: 'folds', value: 'N', description: 'Cross-validate by client, in N groups' },
    { name: 'fit', value: 'FILE', description: 'Fit weights to the corpus, and write them to FILE' },
  ],
  examples: [
    { command: 'evaluate clients.jsonl', description: 'Counts by label, and what was missed' },
    { command: 'evaluate clients.jsonl --folds 10', description: 'The same, for clients held back' },
    { command: 'evaluate clients.jsonl --fit weights.json', description: 'New weights' },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const folds = given.value('folds') === null ? null : Number(given.value('folds'))
  if (folds !== null && !(Number.isInteger(folds) && folds >= 2 && folds <= 1000)) {
    io.stderr.write('--folds takes a whole number from 2 to 1000\n')
    return 2
  }
  const signatures = given.values('signatures')
  const knowledge = await loadKnowledge(signatures.length === 0 ? null : signatures, given.value('weights'))
  const { rows, refused } = await readAll(given.operands, io)
  const fitFile = given.value('fit')
  if (fitFile !== null) await writeWhole(fitFile, weightsDocument(fitTo(knowledge.list, rows), rows))
  const judgements = folds === null ? judged(knowledge, rows) : crossValidate(knowledge.list, rows, folds)
  const evaluation = evaluateAll(judgements, rows.filter(({ requests }) => requests.length === 0).length)
  io.stdout.write(given.flag('json') ? `${JSON.stringify(evaluation)}\n` : report(evaluation))
  return refused === 0 ? 0 : 1
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
  return rows.map((row) => judgeRow(knowledge, row)).filter((judgement) => judgement !== null)
}

function report(evaluation: Evaluation): string {
  const { connections, without_requests, labels, brier, ece, reliability, misses } = evaluation
  const parts = [
    `${connections} connections; ${without_requests} more without a request\n`,
    table(
      ['label', 'n', 'agent', 'automation', 'human', 'unknown', 'named', 'spoofed'],
      Object.entries(labels).map(([label, each]) =>
        [
          label,
          each.n,
          each.agent,
          each.automation,
          each.human,
          each.unknown,
          each.named,
          each.spoof_flagged,
        ].map(String),
      ),
    ),
    `Brier ${brier}, expected calibration error ${ece}\n`,
    table(
      ['confidence', 'n', 'said', 'right'],
      reliability.map(({ from, to, n, confidence, right }) =>
        [`${from} to ${to}`, n, confidence, right].map(String),
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

/** The first column is words, the others are numbers. */
function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const columns = titles.map((title, index): Column => (index === 0 ? { title } : { title, align: 'right' }))
  return `${renderTable(columns, rows, Number.POSITIVE_INFINITY).join('\n')}\n`
}

const MISSES_SAID_MAX = 100
