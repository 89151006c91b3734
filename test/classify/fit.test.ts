import assert from 'node:assert/strict'
import { test } from 'tap'
import type { CorpusRow } from '../../src/classify/known/corpus.ts'
import { EVIDENCE_KINDS, type EvidenceKind } from '../../src/classify/known/evidence.ts'
import {
  type TrainingExample,
  fitCalibration,
  fitTemperature,
  fitWeights,
} from '../../src/classify/measure/fit.ts'
import {
  CLASSES,
  calibrated,
  type Class,
  parseWeights,
  toProbabilities,
} from '../../src/classify/known/weights.ts'
import { weightOfPosing, weightsDocument } from '../../src/commands/fitting.ts'

/** Kinds of which nothing is expected beforehand, and the weights that the generated clients are drawn by. */
const TRUE: Readonly<Partial<Record<EvidenceKind, readonly [number, number, number]>>> = {
  'api-call': [1, -1, 0],
  'stack-of-libraries': [0.5, 1.5, -2],
  'loads-parts': [-1, -0.5, 1.5],
  'language-missing': [0.8, 0.2, -1],
}
const KINDS = Object.keys(TRUE) as EvidenceKind[]
const BIAS = [0.2, -0.4, 0.2]
/** Every observation, as often as the true weights give for each class, without chance. */
const GENERATED = allSubsets(KINDS).flatMap((kinds) => {
  const odds = probabilitiesOf(kinds)
  return CLASSES.map(
    (truth, c): TrainingExample => ({ marks: marksOf(kinds), truth, weight: 100 * odds[c]! }),
  )
})

test('weights that data was made by are found again', async () => {
  const { bias, kinds } = fitWeights(GENERATED, 0.0001)
  // Only differences between the classes say something.
  assertAlike(bias, BIAS, 'bias')
  for (const kind of KINDS) assertAlike(kinds[EVIDENCE_KINDS.indexOf(kind)]!, TRUE[kind]!, kind)
})

test('the same examples give the same weights, in whatever pieces they come', async () => {
  const once = fitWeights(GENERATED, 0.05)
  assert.deepEqual(fitWeights(GENERATED, 0.05), once)
  const halves = GENERATED.map((example) => ({ ...example, weight: example.weight / 2 }))
  assert.deepEqual(fitWeights([...halves, ...halves], 0.05), once)
})

test('what was never seen weighs what is expected of it', async () => {
  const { kinds, bias } = fitWeights([], 0.05)
  const at = (kind: EvidenceKind) => kinds[EVIDENCE_KINDS.indexOf(kind)]!
  assertAlike(bias, [0, 0, 0], 'bias')
  const [agent, automation, human] = at('agent-card') as [number, number, number]
  assert.ok(agent > automation && agent > human, 'a claimed agent is one')
  const tool = at('names-tool') as [number, number, number]
  assert.ok(tool[1] > tool[0] && tool[1] > tool[2])
  const soft = at('http1-only')[2]!
  assert.ok(at('version-disagrees')[2]! < soft && soft < 0, 'a hard disagreement says more than a soft one')
  const habits = ['accepts-pages', 'crawls', 'asks-sitemap'] as const
  for (const kind of [
    'headers-of-agents',
    'certificate-of-agents',
    'fingerprint-of-agent',
    ...habits,
  ] as const)
    assert.ok(at(kind)[0]! > at(kind)[1]! && at(kind)[0]! > at(kind)[2]!, kind)
  assert.ok(at('certificate-of-libraries')[1]! > at('certificate-of-libraries')[0]!)
  assert.ok(at('asks-broadly')[2]! < 0)
  for (const kind of ['asks-broadly', 'asks-sitemap'] as const)
    assert.ok(at(kind)[0]! < tool[1], `${kind} makes no agent of a tool`)
  assert.deepEqual(at('loads-parts'), [0, 0, 0])
})

test('a browser’s own traits do not count against a person', async () => {
  const driven = marksOf(['names-browser', 'stack-agrees', 'header-order-agrees'])
  const { kinds } = fitWeights([{ marks: driven, truth: 'agent', weight: 100 }], 0.05)
  for (const kind of ['stack-agrees', 'http2-agrees', 'header-order-agrees'] as const) {
    const [agent, , human] = kinds[EVIDENCE_KINDS.indexOf(kind)]!
    assert.ok(agent! <= human!, kind)
  }
  assert.ok(kinds[EVIDENCE_KINDS.indexOf('names-browser')]![0]! > 0, 'what is said may')
})

test('few examples move a weight less than many', async () => {
  const seen = (weight: number) => {
    const { kinds } = fitWeights([{ marks: marksOf(['crawls']), truth: 'agent', weight }], 0.5)
    const [agent, automation] = kinds[EVIDENCE_KINDS.indexOf('crawls')]!
    return agent! - automation!
  }
  assert.ok(seen(1) > 0)
  assert.ok(seen(100) > seen(1))
})

test('the temperature is that at which the sums hold', async () => {
  for (const temperature of [0.5, 1, 2]) {
    const sums = GENERATED.map(({ marks }) => sumsOf(marks).map((sum) => sum * temperature))
    const found = fitTemperature(
      sums,
      GENERATED.map(({ truth }) => truth),
      GENERATED.map(({ weight }) => weight),
    )
    assert.ok(Math.abs(found - temperature) <= 0.021, `${found}, not ${temperature}`)
  }
})

test('a calibration says how often guesses were right, and rises', async () => {
  const guesses = [0.3, 0.5, 0.7, 0.9].flatMap((probability) =>
    Array.from({ length: 200 }, (_, i) => ({
      name: 'agent' as const,
      probability,
      isRight: i < 200 * (probability - 0.2),
      weight: 1,
    })),
  )
  const calibration = fitCalibration(guesses)
  const knots = calibration.agent
  assert.deepEqual(fitCalibration(guesses), calibration)
  assert.deepEqual([calibration.automation, calibration.human], [[], []])
  assert.ok(knots.length > 1)
  for (const [i, { probability, right }] of knots.entries()) {
    assert.ok(Math.abs(right - (probability - 0.2)) < 0.06, `${probability}: ${right}`)
    if (i > 0) assert.ok(probability > knots[i - 1]!.probability && right >= knots[i - 1]!.right)
  }
  assert.deepEqual(parseWeights({ temperature: 1, calibration: { agent: knots } }).calibration, calibration)
})

test('the least probable guesses are as sure as their group was right, and no guess below them is', async () => {
  const guesses = Array.from({ length: 60 }, (_, i) => {
    return { name: 'human' as const, probability: i < 10 ? 0.3 : 0.6, isRight: i % 10 !== 0, weight: 1 }
  })
  const weights = { ...fitWeights([], 0.05), calibration: fitCalibration(guesses) }
  const sure = [0.3, 0.45, 0.6].map((probability) => calibrated(weights, 'human', probability))
  for (const each of sure) assert.ok(Math.abs(each - 0.88) < 0.04, `${sure}`)
  assert.ok(calibrated(weights, 'human', 0.15) < 0.5)
})

test('programs that pose as browsers have their assumed share beside the recorded people', async () => {
  const some = (label: string, count: number, requests = 1) =>
    Array.from(
      { length: count },
      () => ({ label, requests: Array(requests).fill(null) }) as unknown as CorpusRow,
    )
  const people = some('human-browser', 40)
  for (const posing of [5, 10, 20]) {
    const rows = [
      ...people,
      ...some('spoofed-browser', posing / 5),
      ...some('browser-agent', (posing / 5) * 4),
    ]
    assert.ok(Math.abs(weightOfPosing([...rows, ...some('browser-agent', 9, 0)]) * posing - 10) < 1e-9)
  }
  assert.deepEqual([weightOfPosing(people), weightOfPosing(some('spoofed-browser', 3))], [1, 1])
})

test('guesses that are worse where they are surer are taken together', async () => {
  const guesses = [
    ...Array.from({ length: 100 }, (_, i) => ({
      name: 'human' as const,
      probability: 0.6,
      isRight: i < 80,
      weight: 1,
    })),
    ...Array.from({ length: 100 }, (_, i) => ({
      name: 'human' as const,
      probability: 0.8,
      isRight: i < 40,
      weight: 1,
    })),
  ]
  for (const { right } of fitCalibration(guesses).human) assert.ok(right > 0.5 && right < 0.7, `${right}`)
  assert.deepEqual(fitCalibration([]).human, [])
})

test('confidence stays below 1, however often it was right', async () => {
  const guesses = Array.from({ length: 5000 }, () => ({
    name: 'automation' as const,
    probability: 1,
    isRight: true,
    weight: 1,
  }))
  assert.ok(fitCalibration(guesses).automation.length > 0)
  for (const { right } of fitCalibration(guesses).automation) assert.ok(right < 1)
})

test('weights are read again as they are written', async () => {
  const weights = fitWeights(GENERATED, 0.05)
  const knots = [{ probability: 0.5, right: 0.6 }]
  for (const human of [[], knots]) {
    const calibration = { agent: [], automation: knots, human }
    const whole = { ...weights, temperature: 1.3, calibration }
    const rows: readonly CorpusRow[] = []
    assert.deepEqual(parseWeights(JSON.parse(weightsDocument(whole, rows))), whole)
  }
})

function allSubsets(kinds: readonly EvidenceKind[]): readonly (readonly EvidenceKind[])[] {
  return Array.from({ length: 2 ** kinds.length }, (_, set) => kinds.filter((_kind, i) => set & (1 << i)))
}

function marksOf(kinds: readonly EvidenceKind[]): readonly number[] {
  return kinds.map((kind) => EVIDENCE_KINDS.indexOf(kind))
}

function sumsOf(marks: readonly number[]): readonly number[] {
  const kinds = marks.map((mark) => EVIDENCE_KINDS[mark]!)
  return CLASSES.map((_name: Class, c) => kinds.reduce((sum, kind) => sum + TRUE[kind]![c]!, BIAS[c]!))
}

function probabilitiesOf(kinds: readonly EvidenceKind[]): readonly number[] {
  const sums = Float64Array.from(sumsOf(marksOf(kinds)))
  toProbabilities(sums, 1)
  return [...sums]
}

function assertAlike(found: readonly number[], wanted: readonly number[], what: string): void {
  for (const [a, b] of [
    [0, 1],
    [1, 2],
  ] as const) {
    const [is, should] = [found[a]! - found[b]!, wanted[a]! - wanted[b]!]
    assert.ok(Math.abs(is - should) < 0.05, `${what}: ${is}, not ${should}`)
  }
}
