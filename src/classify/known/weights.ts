import { DocumentFault, type DocumentProblem, Place } from '../../shared/problem.ts'
import { EVIDENCE_KINDS, type EvidenceSet } from './evidence.ts'

/** The classes of clients, in the order of the weights. */
export const CLASSES = ['agent', 'automation', 'human'] as const

export type Class = (typeof CLASSES)[number]

/** What each kind of evidence adds to each class: natural logarithms of odds, which are summed. */
export interface Weights {
  /** The sums before any evidence, one for each class. */
  readonly bias: readonly number[]
  /** For each kind of evidence, in order: one weight for each class. */
  readonly kinds: readonly (readonly number[])[]
  /** The divisor of all sums, fitted on held-out clients. */
  readonly temperature: number
  /**
   * For each class, how often a verdict was right on held-out clients, by its probability. It never falls, and
   * is linear between two knots. It turns a probability into a confidence.
   */
  readonly calibration: Calibration
}

export type Calibration = Readonly<Record<Class, readonly Knot[]>>

export interface Knot {
  readonly probability: number
  readonly right: number
}

/** Throws a DocumentFault. Evidence that the document omits has weight 0. */
export function parseWeights(value: unknown): Weights {
  const problems: DocumentProblem[] = []
  const place = Place.of(value, problems)
  const members = place.members(['about', 'prior', 'temperature', 'calibration', 'bias', 'weights'])
  const weights = members.get('weights')?.members([...EVIDENCE_KINDS]) ?? new Map<string, Place>()
  const read = (member: Place | undefined) => (member === undefined ? CLASSES.map(() => 0) : triple(member))
  const bias = read(members.get('bias'))
  const kinds = EVIDENCE_KINDS.map((kind) => read(weights.get(kind)))
  const temperature = number(members.get('temperature') ?? place)
  if (temperature !== null && !(temperature > 0)) place.refuse('needs a temperature above 0')
  const calibration = readCalibration(members.get('calibration'))
  if (problems.length > 0) throw new DocumentFault('WEIGHTS_INVALID', problems)
  return { bias: bias!, kinds: kinds as number[][], temperature: temperature!, calibration }
}

/** A list, as earlier versions write it, is for all classes. */
function readCalibration(place: Place | undefined): Calibration {
  if (Array.isArray(place?.value)) {
    const knots = readKnots(place)
    return { agent: knots, automation: knots, human: knots }
  }
  const members = place?.members(CLASSES)
  const [agent, automation, human] = CLASSES.map((name) => readKnots(members?.get(name)))
  return { agent: agent!, automation: automation!, human: human! }
}

function readKnots(place: Place | undefined): readonly Knot[] {
  const knots = (place?.items() ?? []).map((item) => {
    const members = item.members(['probability', 'right'])
    const [probability, right] = ['probability', 'right'].map((name) => share(members.get(name) ?? item))
    return { probability: probability ?? 0, right: right ?? 0 }
  })
  for (let i = 1; i < knots.length; i++) {
    const isRising =
      knots[i]!.probability > knots[i - 1]!.probability && knots[i]!.right >= knots[i - 1]!.right
    if (!isRising) place!.refuse('must rise from each entry to the next')
  }
  return knots
}

function triple(place: Place): readonly number[] | null {
  const members = place.members(CLASSES)
  const values = CLASSES.map((name) => number(members.get(name) ?? place))
  return values.includes(null) ? null : (values as number[])
}

function number(place: Place): number | null {
  const { value } = place
  if (typeof value !== 'number' || !Number.isFinite(value)) return place.refuse('must be a number')
  return Math.abs(value) <= VALUE_MAX ? value : place.refuse(`must be between -${VALUE_MAX} and ${VALUE_MAX}`)
}

function share(place: Place): number | null {
  const value = number(place)
  return value === null || (value >= 0 && value <= 1) ? value : place.refuse('must be from 0 to 1')
}

/** Writes the sum of each class into `into`. */
export function addUp(weights: Weights, marks: EvidenceSet, into: Float64Array): void {
  for (let c = 0; c < CLASSES.length; c++) into[c] = weights.bias[c]!
  for (let half = 0; half < 2; half++) {
    let bits = half === 0 ? marks.low : marks.high
    while (bits !== 0) {
      const bit = 31 - Math.clz32(bits & -bits)
      const weight = weights.kinds[half * 32 + bit]
      if (weight !== undefined) for (let c = 0; c < CLASSES.length; c++) into[c]! += weight[c]!
      bits &= bits - 1
    }
  }
}

/** Turns sums into probabilities, in place. */
export function toProbabilities(sums: Float64Array, temperature: number): void {
  let max = Number.NEGATIVE_INFINITY
  for (const sum of sums) max = Math.max(max, sum)
  let total = 0
  for (let c = 0; c < sums.length; c++) total += sums[c] = Math.exp((sums[c]! - max) / temperature)
  for (let c = 0; c < sums.length; c++) sums[c] = sums[c]! * (1 / total)
}

/** Returns the confidence in this class for its probability. Without a calibration, both are equal. */
export function calibrated({ calibration }: Weights, name: Class, probability: number): number {
  let [below, above]: readonly [Knot, Knot] = [NEVER, ALWAYS]
  for (const knot of calibration[name]) {
    if (knot.probability > probability) {
      above = knot
      break
    }
    below = knot
  }
  const part = (probability - below.probability) / (above.probability - below.probability)
  return below.right + (above.right - below.right) * Math.min(part, 1)
}

export const NO_CALIBRATION: Calibration = { agent: [], automation: [], human: [] }
/** Far beyond certainty, but sums of such values stay finite. */
const VALUE_MAX = 1e15
const NEVER: Knot = { probability: 0, right: 0 }
const ALWAYS: Knot = { probability: 1.000001, right: 1 }
