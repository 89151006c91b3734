import { evidenceOf } from '../classify/verdict/classify.ts'
import { Conduct } from '../classify/verdict/conduct.ts'
import { Scratch } from '../classify/verdict/scratch.ts'
import type { CorpusRow } from '../classify/known/corpus.ts'
import { type Judgement, judgeRows } from '../classify/measure/evaluation.ts'
import { truthOf } from '../classify/measure/truth.ts'
import { EVIDENCE_KINDS, type EvidenceKind, EvidenceSet } from '../classify/known/evidence.ts'
import { type TrainingExample, fitCalibration, fitTemperature, fitWeights } from '../classify/measure/fit.ts'
import type { Software } from '../classify/known/software.ts'
import { addUp, CLASSES, type Class, NO_CALIBRATION, type Weights } from '../classify/known/weights.ts'
import { knowledgeOf } from '../runtime/signatures/knowledge-files.ts'

/** Weights for all rows, with the temperature that gives correct confidences on held-out clients. */
export function fitTo(list: readonly Software[], rows: readonly CorpusRow[]): Weights {
  const examples = examplesOf(list, rows)
  const weights = fitWeights(
    examples.map(({ example }) => example),
    PRIOR,
  )
  return { ...weights, ...calibrationOf(list, rows) }
}

/**
 * Judges each group of clients with weights fitted to the other groups, and without signatures measured on
 * it. `begun` is called before each group with the number of groups in total and so far.
 */
export function crossValidate(
  list: readonly Software[],
  rows: readonly CorpusRow[],
  folds: number,
  begun: (done: number, all: number) => void = () => undefined,
): readonly Judgement[] {
  return groupsOf(rows, folds).flatMap((group, done, all) => {
    begun(done, all.length)
    const { known, weights } = withoutGroup(list, rows, group)
    const others = rows.filter((row) => !group.has(row.client))
    const knowledge = knowledgeOf(known, { ...weights, ...calibrationOf(known, others) })
    const held = rows.filter(({ client }) => group.has(client))
    return judgeRows(knowledge, held)
  })
}

/** A document that `parseWeights` reads. */
export function weightsDocument(
  { bias, kinds, temperature, calibration }: Weights,
  rows: readonly CorpusRow[],
): string {
  const named = (values: readonly number[]) => oneLine(CLASSES.map((name, c) => [name, values[c]!]))
  const clients = new Set(rows.map(({ client }) => client)).size
  const about = `Fitted to ${rows.length} connections of ${clients} clients by \`gatehouse evaluate --fit\`. Natural logarithms of odds.`
  const knots = CLASSES.filter((name) => calibration[name].length > 0).map((name) => {
    const entries = calibration[name].map((knot) => oneLine(Object.entries(knot)))
    const short = `    "${name}": [${entries.join(', ')}]`
    if (short.length <= LINE_MAX) return short
    return `    "${name}": [\n${entries.map((entry) => `      ${entry}`).join(',\n')}\n    ]`
  })
  const lines = EVIDENCE_KINDS.map((kind, bit) => `    ${JSON.stringify(kind)}: ${named(kinds[bit]!)}`)
  return [
    '{',
    `  "about": ${JSON.stringify(about)},`,
    `  "prior": { "programs_among_browsers": ${POSING_SHARE} },`,
    `  "temperature": ${temperature},`,
    '  "calibration": {',
    knots.join(',\n'),
    '  },',
    `  "bias": ${named(bias)},`,
    '  "weights": {',
    lines.join(',\n'),
    '  }',
    '}',
    '',
  ].join('\n')
}

/** The longest line of the formatter, which may add a comma. */
const LINE_MAX = 109

/** An object in the formatter's style. */
function oneLine(entries: readonly (readonly [string, number])[]): string {
  return `{ ${entries.map(([name, value]) => `${JSON.stringify(name)}: ${value}`).join(', ')} }`
}

interface LabelledExample {
  readonly client: string
  readonly example: TrainingExample
}

/**
 * Most clients of a site are not among the recorded ones. So each connection counts three times: with all
 * knowledge, as if its client had not been recorded, and as if its software were unknown.
 */
function examplesOf(list: readonly Software[], rows: readonly CorpusRow[]): readonly LabelledExample[] {
  // Contradictions need examples, so here they count between their recorded and their assumed share.
  const posing = Math.sqrt(weightOfPosing(rows))
  const examples = [...examplesWith(list, rows, KNOWN_SHARE, posing), ...EXAMPLES_OF_FACTS]
  for (const group of groupsOf(rows, FORGETTING_GROUPS)) {
    const own = rows.filter(({ client }) => group.has(client))
    examples.push(...examplesWith(withoutMeasured(list, group), own, UNRECORDED_SHARE, posing))
    examples.push(...examplesWith(withoutSoftware(list, group), own, UNHEARD_SHARE, posing))
  }
  return examples
}

/** Weight of a fact, in connections. */
const FACT_WEIGHT = 4

/** Published facts, as if each client had been recorded: clients that name themselves are what they claim. */
const EXAMPLES_OF_FACTS: readonly LabelledExample[] = [
  ...(['stack-of-libraries', 'stack-unknown', 'stack-shared'] as const).flatMap((stack) => [
    factExample('agent', 'names-agent', stack),
    factExample('agent', 'agent-header', stack),
    factExample('agent', 'declares-bot', stack),
    factExample('automation', 'names-tool', stack),
    factExample('automation', 'names-tool', 'runtime-fetch', stack),
    // Programs of a site's own users, which call its API.
    factExample('automation', 'names-tool', 'runtime-fetch', 'api-token', 'api-call', stack),
    // SDKs name themselves, also new ones, and a program that calls a model without one names a library.
    factExample('agent', 'unknown-product', 'llm-request', 'api-call', stack),
    factExample('agent', 'unknown-product', 'llm-request', 'api-token', 'api-call', stack),
    factExample('automation', 'names-tool', 'runtime-fetch', 'llm-request', 'api-token', 'api-call', stack),
    // Nutch, Heritrix, Scrapy, and programs that use a library to read pages.
    factExample('agent', 'names-tool', 'accepts-pages', stack),
    factExample('agent', 'names-tool', 'crawls', stack),
    // MCP clients that have no token yet.
    factExample('agent', 'names-tool', 'oauth-discovery', stack),
    factExample('agent', 'names-tool', 'runtime-fetch', 'oauth-discovery', stack),
    // Monitors, and site owners who check their own site.
    factExample('automation', 'names-tool', 'asks-sitemap', stack),
    factExample('automation', 'names-tool', 'runtime-fetch', 'asks-sitemap', stack),
    // Clients of object stores, which sign each request.
    factExample('automation', 'names-tool', 'api-token', stack),
    factExample('automation', 'names-tool', 'api-token', 'asks-sitemap', stack),
    factExample('human', 'names-plain-browser', stack),
  ]),
  ...(['stack-of-browsers', 'stack-unknown'] as const).flatMap((stack) => [
    factExample('agent', 'names-agent', stack),
    factExample('human', 'names-browser', stack, 'header-order-agrees'),
    factExample('human', 'names-browser', stack, 'header-order-agrees', 'http2-agrees'),
  ]),
]

function factExample(truth: Class, ...kinds: readonly EvidenceKind[]): LabelledExample {
  const marks = kinds.map((kind) => EVIDENCE_KINDS.indexOf(kind))
  return { client: 'facts', example: { marks, truth, weight: FACT_WEIGHT } }
}

/**
 * Each request yields the evidence known at that time; all requests of a connection count as one connection.
 */
function* examplesWith(
  list: readonly Software[],
  rows: readonly CorpusRow[],
  share: number,
  posing: number,
): Generator<LabelledExample> {
  const knowledge = knowledgeOf(list, NO_WEIGHTS)
  const scratch = new Scratch()
  for (const { client, label, print, requests } of rows) {
    const truth = truthOf(label)
    if (truth === null) continue
    const conduct = new Conduct()
    const weight = (share * (POSING.has(label) ? posing : 1)) / requests.length
    for (const { head, ja4h, atMs } of requests) {
      const request = { print: { connection: print, ja4h }, head, conduct, nowMs: atMs ?? 0 }
      const kinds = evidenceOf(knowledge, request, scratch)
      const marks = kinds.map((kind) => EVIDENCE_KINDS.indexOf(kind))
      yield { client, example: { marks, truth, weight } }
    }
  }
}

function withoutGroup(list: readonly Software[], rows: readonly CorpusRow[], group: ReadonlySet<string>) {
  const known = withoutMeasured(list, group)
  const others = examplesOf(
    known,
    rows.filter(({ client }) => !group.has(client)),
  )
  const weights = fitWeights(
    others.map(({ example }) => example),
    PRIOR,
  )
  return { known, weights }
}

/** Temperature and calibration, from judging each group of clients with weights fitted to the others. */
function calibrationOf(
  list: readonly Software[],
  rows: readonly CorpusRow[],
): Pick<Weights, 'temperature' | 'calibration'> {
  const posing = weightOfPosing(rows)
  const groups = groupsOf(rows, TEMPERATURE_FOLDS).map((group) => ({
    ...withoutGroup(list, rows, group),
    own: rows.filter(({ client }) => group.has(client)),
  }))
  const held = groups.flatMap(({ known, weights, own }) =>
    [...examplesWith(known, own, 1, Math.sqrt(posing))].map(({ example }) => ({
      sums: sumsOf(weights, example.marks),
      example,
    })),
  )
  const temperature = fitTemperature(
    held.map(({ sums }) => sums),
    held.map(({ example }) => example.truth),
    held.map(({ example }) => example.weight),
  )
  const judgements = groups.flatMap(({ known, weights, own }) => {
    const knowledge = knowledgeOf(known, { ...weights, temperature })
    return judgeRows(knowledge, own)
  })
  const told = judgements.filter(
    ({ row, verdict }) => verdict.kind !== 'unknown' && truthOf(row.label) !== null,
  )
  const guesses = told.map(({ row, verdict }) => {
    const name = verdict.kind as Class // `unknown` is left out above
    const weight = POSING.has(row.label) ? posing : 1
    return { name, probability: verdict.confidence, isRight: name === truthOf(row.label), weight }
  })
  return { temperature, calibration: fitCalibration(guesses) }
}

/**
 * How much a program that poses as a person's browser counts, so that such programs have their assumed share
 * beside the recorded people. The shares in recordings say nothing about traffic. 1 without one of the two.
 */
export function weightOfPosing(rows: readonly CorpusRow[]): number {
  const used = rows.filter(({ requests }) => requests.length > 0)
  const posing = used.filter(({ label }) => POSING.has(label)).length
  const people = used.filter(({ label }) => truthOf(label) === 'human').length
  return posing === 0 || people === 0 ? 1 : (POSING_SHARE / (1 - POSING_SHARE)) * (people / posing)
}

function sumsOf(weights: Weights, marks: readonly number[]): readonly number[] {
  const set = new EvidenceSet()
  for (const mark of marks) set.add(EVIDENCE_KINDS[mark]!)
  const sums = new Float64Array(CLASSES.length)
  addUp(weights, set, sums)
  return [...sums]
}

/** The list as if these clients had not been recorded: published facts stay. */
function withoutMeasured(list: readonly Software[], clients: ReadonlySet<string>): readonly Software[] {
  return list.map((software) => {
    if (!isOne(software, clients)) return software
    const signatures = software.signatures.filter(({ observations }) => observations === 0)
    return { ...software, signatures }
  })
}

/** Browsers stay, because every installation knows them. */
function withoutSoftware(list: readonly Software[], clients: ReadonlySet<string>): readonly Software[] {
  const rest = list.filter((software) => software.kind === 'browser' || !isOne(software, clients))
  return withoutMeasured(rest, clients)
}

function isOne({ id, aliases }: Software, clients: ReadonlySet<string>): boolean {
  return clients.has(id) || aliases.some((alias) => clients.has(alias))
}

/** Groups in order of client names: similar clients get into different groups, and the result is stable. */
function groupsOf(rows: readonly CorpusRow[], count: number): readonly ReadonlySet<string>[] {
  const clients = [...new Set(rows.map(({ client }) => client))].sort()
  const groups = Array.from({ length: Math.min(count, clients.length) }, () => new Set<string>())
  for (const [i, client] of clients.entries()) groups[i % groups.length]!.add(client)
  return groups
}

/**
 * The share of programs among the clients that look like browsers: 15 to 20 % of the page views of large
 * retailers (performancezen.com/?p=4198, 2026).
 */
const POSING_SHARE = 0.2
const POSING: ReadonlySet<string> = new Set(['browser-agent', 'spoofed-browser'])
const PRIOR = 0.05
const TEMPERATURE_FOLDS = 8
const FORGETTING_GROUPS = 12
const KNOWN_SHARE = 0.5
const UNRECORDED_SHARE = 0.25
const UNHEARD_SHARE = 0.25
const NO_WEIGHTS: Weights = {
  bias: CLASSES.map(() => 0),
  kinds: EVIDENCE_KINDS.map(() => CLASSES.map(() => 0)),
  temperature: 1,
  calibration: NO_CALIBRATION,
}
