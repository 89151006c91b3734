import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { EVIDENCE_KINDS, type EvidenceKind, EvidenceSet } from '../../src/classify/known/evidence.ts'
import {
  addUp,
  CLASSES,
  calibrated,
  NO_CALIBRATION,
  parseWeights,
  toProbabilities,
} from '../../src/classify/known/weights.ts'
import { loadWeightsDocument } from '../../src/runtime/signatures/knowledge-files.ts'
import { DocumentFault } from '../../src/shared/problem.ts'

const TRIPLE = { agent: 1, automation: -2, human: 0.5 }

test('evidence that the document does not name weighs nothing', async () => {
  const weights = parseWeights({ temperature: 2, weights: { headless: TRIPLE } })
  assert.deepEqual(weights.bias, [0, 0, 0])
  assert.equal(weights.kinds.length, EVIDENCE_KINDS.length)
  for (const [bit, kind] of EVIDENCE_KINDS.entries())
    assert.deepEqual(weights.kinds[bit], kind === 'headless' ? [1, -2, 0.5] : [0, 0, 0], kind)
  assert.deepEqual([weights.temperature, weights.calibration], [2, NO_CALIBRATION])
})

test('our own weights are read, and name every kind of evidence', async () => {
  const document = (await loadWeightsDocument(null)) as { weights: Record<string, unknown> }
  assert.deepEqual(Object.keys(document.weights), [...EVIDENCE_KINDS])
  const { calibration } = parseWeights(document)
  for (const name of CLASSES) assert.ok(calibration[name].length > 0, name)
})

test('a calibration that is a list is for all classes, as earlier versions write it', async () => {
  const knots = [knot(0.4, 0.2), knot(0.8, 0.9)]
  const { calibration } = parseWeights({ temperature: 1, calibration: knots })
  assert.deepEqual(calibration, { agent: knots, automation: knots, human: knots })
})

const REFUSED: readonly (readonly [pointer: string, document: unknown])[] = [
  ['', null],
  ['', 'weights'],
  ['', {}],
  ['/bias', { temperature: 1, bias: [0, 0, 0] }],
  ['/bias', { temperature: 1, bias: { agent: 1, human: 2 } }],
  ['/bias/agent', { temperature: 1, bias: { ...TRIPLE, agent: '1' } }],
  ['/bias/human', { temperature: 1, bias: { ...TRIPLE, human: Number.NaN } }],
  ['/bias/human', { temperature: 1, bias: { ...TRIPLE, human: 1e308 } }],
  ['/bias/robot', { temperature: 1, bias: { ...TRIPLE, robot: 1 } }],
  ['/weights/nonsense', { temperature: 1, weights: { nonsense: TRIPLE } }],
  ['/weights/headless/human', { temperature: 1, weights: { headless: { ...TRIPLE, human: null } } }],
  ['/weights', { temperature: 1, weights: 7 }],
  ['', { temperature: 0 }],
  ['', { temperature: -1 }],
  ['/temperature', { temperature: '1' }],
  ['/temperature', { temperature: Number.POSITIVE_INFINITY }],
  ['/other', { temperature: 1, other: 1 }],
  ['/calibration', { temperature: 1, calibration: 7 }],
  ['/calibration/robot', { temperature: 1, calibration: { robot: [] } }],
  ['/calibration/human', { temperature: 1, calibration: { human: [knot(0.6, 0.7), knot(0.5, 0.8)] } }],
  ['/calibration/human', { temperature: 1, calibration: { human: [knot(0.6, 0.7), knot(0.7, 0.6)] } }],
  ['/calibration/human', { temperature: 1, calibration: { human: [knot(0.6, 0.7), knot(0.6, 0.7)] } }],
  ['/calibration/human/0', { temperature: 1, calibration: { human: [{ probability: 0.5 }] } }],
  ['/calibration/human/0', { temperature: 1, calibration: { human: [0.5] } }],
  [
    '/calibration/human/1/right',
    { temperature: 1, calibration: { human: [knot(0.1, 0.7), knot(0.7, 1.1)] } },
  ],
  ['/calibration/human/0/probability', { temperature: 1, calibration: { human: [knot(-0.1, 0.7)] } }],
]

for (const [pointer, document] of REFUSED) {
  test(`refused at ${pointer || 'the top'}: ${JSON.stringify(document)}`, async () => {
    assert.throws(
      () => parseWeights(document),
      (fault) =>
        fault instanceof DocumentFault &&
        fault.code === 'WEIGHTS_INVALID' &&
        fault.problems.some((problem) => problem.pointer === pointer),
    )
  })
}

test('sums are those of the bias and of each kind that was found, the 32nd and later ones too', async () => {
  const document = {
    temperature: 1,
    bias: TRIPLE,
    weights: Object.fromEntries(
      EVIDENCE_KINDS.map((kind, bit) => [kind, { agent: bit, automation: -bit, human: bit * bit }]),
    ),
  }
  const weights = parseWeights(document)
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(EVIDENCE_KINDS.length - 1)), (bits) => {
      const set = new EvidenceSet()
      for (const bit of bits) set.add(EVIDENCE_KINDS[bit]!)
      assert.deepEqual(set.kinds(), kindsOf(bits))
      const sums = new Float64Array(3)
      addUp(weights, set, sums)
      const total = bits.reduce((sum, bit) => sum + bit, 0)
      const squares = bits.reduce((sum, bit) => sum + bit * bit, 0)
      assert.deepEqual([...sums], [1 + total, -2 - total, 0.5 + squares])
    }),
  )
})

test('probabilities: none is lost, the larger sum is the more probable, and heat levels them', async () => {
  assert.deepEqual(probabilities([0, 0, 0], 1).map(rounded), [0.3333, 0.3333, 0.3333])
  assert.deepEqual(probabilities([Math.log(6), Math.log(3), 0], 1).map(rounded), [0.6, 0.3, 0.1])
  assert.deepEqual(probabilities([Math.log(36), Math.log(9), 0], 2).map(rounded), [0.6, 0.3, 0.1])
  assert.deepEqual(probabilities([5000, -5000, 0], 1), [1, 0, 0], 'no sum is too large')
  const sum = fc.double({ min: -500, max: 500, noNaN: true })
  fc.assert(
    fc.property(
      fc.tuple(sum, sum, sum),
      fc.double({ min: 0.1, max: 10, noNaN: true }),
      (sums, temperature) => {
        const found = probabilities(sums, temperature)
        assert.ok(Math.abs(found.reduce((total, each) => total + each, 0) - 1) < 1e-9)
        for (const a of [0, 1, 2])
          for (const b of [0, 1, 2]) if (sums[a]! > sums[b]!) assert.ok(found[a]! >= found[b]!)
      },
    ),
  )
})

test('a confidence is read off straight between two knots', async () => {
  const none = parseWeights({ temperature: 1 })
  assert.ok(Math.abs(calibrated(none, 'human', 0.7) - 0.7) < 1e-5)
  const weights = parseWeights({ temperature: 1, calibration: { agent: [knot(0.4, 0.2), knot(0.8, 0.9)] } })
  for (const [probability, right] of [
    [0.2, 0.1],
    [0.4, 0.2],
    [0.6, 0.55],
    [0.8, 0.9],
    [0.9, 0.95],
    [1, 1],
  ] as const)
    assert.ok(Math.abs(calibrated(weights, 'agent', probability) - right) < 1e-4, `${probability}`)
  assert.ok(Math.abs(calibrated(weights, 'human', 0.4) - 0.4) < 1e-4, 'each class has its own')
})

test('a confidence never falls as the probability rises, and stays between 0 and 1', async () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true })
  const knots = fc
    .tuple(fc.uniqueArray(share, { maxLength: 5 }), fc.array(share, { minLength: 5, maxLength: 5 }))
    .map(([at, right]) => {
      const rising = right.toSorted((a, b) => a - b)
      return at.toSorted((a, b) => a - b).map((probability, i) => knot(probability, rising[i]!))
    })
  fc.assert(
    fc.property(knots, share, share, (automation, a, b) => {
      const weights = { ...parseWeights({ temperature: 1 }), calibration: { ...NO_CALIBRATION, automation } }
      const [low, high] = [Math.min(a, b), Math.max(a, b)].map((each) =>
        calibrated(weights, 'automation', each),
      )
      assert.ok(low! >= 0 && high! <= 1 && low! <= high! + 1e-12, `${low} ${high}`)
    }),
  )
})

function kindsOf(bits: readonly number[]): readonly EvidenceKind[] {
  return EVIDENCE_KINDS.filter((_kind, bit) => bits.includes(bit))
}

function probabilities(sums: readonly number[], temperature: number): number[] {
  const into = Float64Array.from(sums)
  assert.equal(into.length, CLASSES.length)
  toProbabilities(into, temperature)
  return [...into]
}

function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000
}

function knot(probability: number, right: number) {
  return { probability, right }
}
