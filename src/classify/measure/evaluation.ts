import { Conduct } from '../verdict/conduct.ts'
import { classify, recall } from '../verdict/classify.ts'
import type { CorpusRow } from '../known/corpus.ts'
import { PeopleShown } from './differences.ts'
import type { Knowledge } from '../known/knowledge.ts'
import { NameBook } from '../known/own-name.ts'
import { NO_PROOFS } from '../verdict/proof.ts'
import { Scratch } from '../verdict/scratch.ts'
import type { Verdict } from '../verdict/verdict.ts'
import type { RowVerdict } from './comparison.ts'
import type { Class } from '../known/weights.ts'
import { truthOf } from './truth.ts'

/** How one recorded connection was classified. */
export interface Judgement {
  readonly row: CorpusRow
  /** After the last request. */
  readonly verdict: Verdict
  /** The probability that the client is an agent, whatever the verdict is. */
  readonly agentProbability: number
  /** The Software that the verdict names is the client. */
  readonly isNamed: boolean
  /** The client states its name somewhere: see `NameBook`. */
  readonly namesItself: boolean
  readonly isSpoofFlagged: boolean
}

/** Classifies connections by everything up to their last request. Connections without a request are left out. */
export function judgeRows(knowledge: Knowledge, rows: readonly CorpusRow[]): Judgement[] {
  const names = new NameBook(knowledge.list)
  const scratch = new Scratch()
  return rows.map((row) => judgeRow(knowledge, row, names, scratch)).filter((each) => each !== null)
}

/** `null` if the connection had no request. */
export function judgeRow(
  knowledge: Knowledge,
  row: CorpusRow,
  names = new NameBook(knowledge.list),
  scratch = new Scratch(),
): Judgement | null {
  const conduct = new Conduct()
  let verdict: Verdict | null = null
  for (const { head, ja4h, atMs } of row.requests)
    verdict = classify(
      knowledge,
      { print: { connection: row.print, ja4h }, head, conduct, nowMs: atMs ?? 0 },
      NO_PROOFS,
      scratch,
    )
  if (verdict === null) return null
  return {
    row,
    verdict,
    agentProbability: recall(
      knowledge,
      verdict.evidence.map(({ kind }) => kind),
      verdict.kind,
    ).probabilities.agent,
    isNamed: verdict.software !== null && names.isCalled(verdict.software.id, row.client),
    namesItself: names.namesItself(row),
    isSpoofFlagged: verdict.evidence.some(({ kind }) => kind === 'spoofed-browser'),
  }
}

export interface LabelCounts {
  n: number
  agent: number
  automation: number
  human: number
  unknown: number
  named: number
  spoof_flagged: number
  /** Connections that state their name somewhere, and those of them that were named correctly. */
  self_named: number
  self_named_right: number
  /**
   * For automated browsers: those that show something that no person's browser was recorded to show, those of
   * them classified as agents, and those that cannot be compared with any person's.
   */
  marked: number
  marked_agent: number
  incomparable: number
}

export interface Evaluation {
  /** Connections with at least one request. */
  readonly connections: number
  readonly without_requests: number
  readonly labels: Readonly<Record<string, LabelCounts>>
  /** The counts for each client. */
  readonly clients: Readonly<Record<string, LabelCounts & { label: string }>>
  /** Over all connections with a known label and a verdict other than `unknown`. */
  readonly brier: number
  readonly ece: number
  readonly reliability: readonly ReliabilityBin[]
  /** The same for each verdict by itself. */
  readonly reliability_by_verdict: Readonly<Record<Class, readonly ReliabilityBin[]>>
  readonly misses: readonly Miss[]
  /** Of every connection, in the order of the recording. */
  readonly verdicts: readonly RowVerdict[]
}

export interface ReliabilityBin {
  readonly from: number
  readonly to: number
  readonly n: number
  readonly confidence: number
  readonly right: number
}

export interface Miss {
  readonly id: string
  readonly client: string
  readonly label: string
  readonly verdict: Verdict['kind']
  readonly confidence: number
  readonly software: string | null
  readonly evidence: readonly string[]
}

export function evaluate(judgements: readonly Judgement[], withoutRequests: number): Evaluation {
  const labels = new Map<string, LabelCounts>()
  const clients = new Map<string, LabelCounts & { label: string }>()
  const misses: Miss[] = []
  const people = new PeopleShown(judgements.map(({ row }) => row).filter(({ label }) => label === PERSON))
  for (const judgement of judgements) {
    const { row, verdict } = judgement
    const label = labels.get(row.label) ?? zero()
    const client = clients.get(row.client) ?? { label: row.label, ...zero() }
    labels.set(row.label, label)
    clients.set(row.client, client)
    for (const counts of [label, client]) {
      count(counts, judgement)
      if (row.label === AUTOMATED) countMark(counts, verdict, people.differencesOf(row))
    }
    const truth = truthOf(row.label)
    if (truth !== null && verdict.kind !== truth) misses.push(missOf(judgement))
  }
  const told = judgements.filter(
    ({ row, verdict }) => truthOf(row.label) !== null && verdict.kind !== 'unknown',
  )
  const reliability = reliabilityOf(told)
  const ece = reliability.reduce((sum, { n, confidence, right }) => sum + n * Math.abs(confidence - right), 0)
  return {
    connections: judgements.length,
    without_requests: withoutRequests,
    labels: Object.fromEntries(labels),
    clients: Object.fromEntries(clients),
    brier: rounded(mean(told.map(({ row, verdict }) => (verdict.confidence - rightOf(row, verdict)) ** 2))),
    ece: rounded(ece / Math.max(told.length, 1)),
    reliability,
    reliability_by_verdict: {
      agent: reliabilityOf(told.filter(({ verdict }) => verdict.kind === 'agent')),
      automation: reliabilityOf(told.filter(({ verdict }) => verdict.kind === 'automation')),
      human: reliabilityOf(told.filter(({ verdict }) => verdict.kind === 'human')),
    },
    misses,
    verdicts: judgements.map(rowVerdictOf),
  }
}

function rowVerdictOf({ row: { id, client, label }, verdict }: Judgement): RowVerdict {
  const { kind, confidence, software } = verdict
  return { id, client, label, verdict: kind, confidence, software: software?.id ?? null }
}

function zero(): LabelCounts {
  return {
    n: 0,
    agent: 0,
    automation: 0,
    human: 0,
    unknown: 0,
    named: 0,
    spoof_flagged: 0,
    self_named: 0,
    self_named_right: 0,
    marked: 0,
    marked_agent: 0,
    incomparable: 0,
  }
}

function count(into: LabelCounts, { verdict, isNamed, namesItself, isSpoofFlagged }: Judgement): void {
  into.n++
  into[verdict.kind]++
  if (isNamed) into.named++
  if (namesItself) into.self_named++
  if (namesItself && isNamed) into.self_named_right++
  if (isSpoofFlagged) into.spoof_flagged++
}

function countMark(into: LabelCounts, { kind }: Verdict, differences: readonly string[] | null): void {
  if (differences === null) into.incomparable++
  else if (differences.length > 0) {
    into.marked++
    if (kind === 'agent') into.marked_agent++
  }
}

function missOf({ row, verdict }: Judgement): Miss {
  return {
    id: row.id,
    client: row.client,
    label: row.label,
    verdict: verdict.kind,
    confidence: verdict.confidence,
    software: verdict.software?.id ?? null,
    evidence: verdict.evidence.map(({ kind }) => kind),
  }
}

function rightOf(row: CorpusRow, verdict: Verdict): number {
  return truthOf(row.label) === verdict.kind ? 1 : 0
}

function reliabilityOf(judgements: readonly Judgement[]): readonly ReliabilityBin[] {
  const bins: ReliabilityBin[] = []
  for (let bin = 0; bin < BINS; bin++) {
    const [from, to] = [bin / BINS, (bin + 1) / BINS]
    const inside = judgements.filter(
      ({ verdict }) => Math.min(Math.floor(verdict.confidence * BINS), BINS - 1) === bin,
    )
    if (inside.length === 0) continue
    bins.push({
      from,
      to,
      n: inside.length,
      confidence: rounded(mean(inside.map(({ verdict }) => verdict.confidence))),
      right: rounded(mean(inside.map(({ row, verdict }) => rightOf(row, verdict)))),
    })
  }
  return bins
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}

function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000
}

const BINS = 10
const PERSON = 'human-browser'
const AUTOMATED = 'browser-agent'
