import {
  DISAGREEMENTS,
  EVIDENCE_KINDS,
  type EvidenceKind,
  REMOVABLE,
  SOFT_DISAGREEMENTS,
} from '../known/evidence.ts'
import {
  type Calibration,
  CLASSES,
  type Class,
  type Knot,
  NO_CALIBRATION,
  type Weights,
} from '../known/weights.ts'

/** What was seen of one client at one time, and its true class. */
export interface TrainingExample {
  /** Bits of the evidence kinds. */
  readonly marks: readonly number[]
  readonly truth: Class
  /** How much it counts. */
  readonly weight: number
}

/**
 * Fits the weights under which the examples are most likely (multinomial logistic regression), with a prior:
 * evidence in few examples keeps about its expected weight. The same examples give the same weights.
 */
export function fitWeights(examples: readonly TrainingExample[], prior: number): Weights {
  const parameters = Float64Array.from(MEANS)
  const different = together(examples)
  const gradient = new Float64Array(parameters.length)
  const first = new Float64Array(parameters.length)
  const second = new Float64Array(parameters.length)
  for (let step = 1; step <= STEPS; step++) {
    gradientOf(different, parameters, prior, gradient)
    // Adam with a falling rate: plain descent takes a hundred times as long on rare kinds.
    const rate = RATE * (1 - (step - 1) / STEPS)
    for (let i = 0; i < parameters.length; i++) {
      first[i] = 0.9 * first[i]! + 0.1 * gradient[i]!
      second[i] = 0.999 * second[i]! + 0.001 * gradient[i]! * gradient[i]!
      const mean = first[i]! * (1 / (1 - 0.9 ** step))
      const spread = Math.sqrt(second[i]! * (1 / (1 - 0.999 ** step))) + 1e-9
      parameters[i] = parameters[i]! - rate * (mean / spread)
    }
    levelAgreements(parameters)
  }
  return weightsOf(parameters)
}

/**
 * Automation that drives a browser shows everything the browser shows. So evidence that agrees with a browser
 * must not count more for an agent than for a human.
 */
function levelAgreements(parameters: Float64Array): void {
  for (const row of AGREEMENTS) {
    const [agent, human] = [row * C + CLASSES.indexOf('agent'), row * C + CLASSES.indexOf('human')]
    if (parameters[agent]! <= parameters[human]!) continue
    parameters[agent] = parameters[human] = (parameters[agent]! + parameters[human]!) / 2
  }
}

/** Finds the divisor of the sums for which probabilities fit held-out examples. */
export function fitTemperature(
  sums: readonly (readonly number[])[],
  truths: readonly Class[],
  weights: readonly number[],
): number {
  let best = 1
  let least = Number.POSITIVE_INFINITY
  for (let temperature = 0.3; temperature <= 3; temperature += 0.02) {
    let loss = 0
    for (const [i, each] of sums.entries()) {
      const scaled = each.map((sum) => sum / temperature)
      loss += weights[i]! * (logSum(scaled) - scaled[CLASSES.indexOf(truths[i]!)]!)
    }
    if (loss < least) [best, least] = [temperature, loss]
  }
  return Math.round(best * 100) / 100
}

/** Merges equal examples: most of them are equal to others. */
function together(examples: readonly TrainingExample[]): readonly TrainingExample[] {
  const different = new Map<string, TrainingExample>()
  for (const example of examples) {
    const key = `${example.truth} ${example.marks}`
    const weight = example.weight + (different.get(key)?.weight ?? 0)
    different.set(key, { ...example, weight })
  }
  return [...different.values()]
}

/** One guess: the class, its probability, whether it was right, and how much it counts. */
export interface Guess {
  readonly name: Class
  readonly probability: number
  readonly isRight: boolean
  readonly weight: number
}

/** For each class, how often guesses of it were right, by their probability. */
export function fitCalibration(guesses: readonly Guess[]): Calibration {
  const of = (name: Class) => knotsOf(guesses.filter((guess) => guess.name === name))
  return { agent: of('agent'), automation: of('automation'), human: of('human') }
}

/** It never falls, and a small group changes it little. */
function knotsOf(guesses: readonly Guess[]): readonly Knot[] {
  const knots: { probability: number; right: number; weight: number }[] = []
  for (const group of groupsOf(guesses)) {
    const weight = group.reduce((sum, guess) => sum + guess.weight, 0)
    const probability = group.reduce((sum, guess) => sum + guess.weight * guess.probability, 0) / weight
    const right = group.reduce((sum, guess) => sum + (guess.isRight ? guess.weight : 0), 0)
    knots.push({ probability, right: (right + TRUST * probability) / (weight + TRUST), weight })
    // Pool adjacent violators: merges two knots that fall.
    for (
      let last = knots.at(-1)!;
      knots.length > 1 && knots.at(-2)!.right >= last.right;
      last = knots.at(-1)!
    ) {
      const [before] = knots.splice(-2, 1) as [typeof last]
      const sum = before.weight + last.weight
      const mean = (a: number, b: number) => (a * before.weight + b * last.weight) / sum
      knots[knots.length - 1] = {
        probability: mean(before.probability, last.probability),
        right: mean(before.right, last.right),
        weight: sum,
      }
    }
  }
  const rounded = (value: number) => Math.round(value * 10_000) / 10_000
  // What is guessed with the least probability is as often right as its group.
  const lowest = guesses.reduce((least, { probability }) => Math.min(least, probability), 1)
  const all = [{ probability: lowest, right: knots[0]?.right ?? 0 }, ...knots].map(
    ({ probability, right }) => ({
      probability: rounded(probability),
      right: rounded(right),
    }),
  )
  if (knots.length === 0) return []
  // A few hundred right guesses do not justify a confidence of 1.
  return all
    .filter(({ probability }, i) => i === 0 || probability >= all[i - 1]!.probability + KNOTS_APART)
    .map(({ probability, right }) => ({ probability, right: Math.min(right, SURE) }))
}

/** Groups by ascending probability, each so large that a single guess changes little. */
function groupsOf(guesses: readonly Guess[]): readonly (readonly Guess[])[] {
  const groups: Guess[][] = [[]]
  let weight = 0
  for (const guess of guesses.toSorted((a, b) => a.probability - b.probability)) {
    if (weight >= GROUP_WEIGHT) {
      groups.push([])
      weight = 0
    }
    groups.at(-1)!.push(guess)
    weight += guess.weight
  }
  return groups.filter((group) => group.length > 0)
}

function gradientOf(
  examples: readonly TrainingExample[],
  parameters: Float64Array,
  prior: number,
  into: Float64Array,
): void {
  for (let i = 0; i < into.length; i++) into[i] = i < C ? 0 : prior * (parameters[i]! - MEANS[i]!)
  const sums = new Array<number>(C).fill(0)
  for (const { marks, truth, weight } of examples) {
    for (let c = 0; c < C; c++) sums[c] = parameters[c]!
    for (const mark of marks) for (let c = 0; c < C; c++) sums[c]! += parameters[(mark + 1) * C + c]!
    const total = logSum(sums)
    for (let c = 0; c < C; c++) {
      const error = weight * (Math.exp(sums[c]! - total) - (CLASSES[c] === truth ? 1 : 0))
      into[c]! += error
      for (const mark of marks) into[(mark + 1) * C + c]! += error
    }
  }
}

function weightsOf(parameters: Float64Array): Weights {
  const at = (row: number) => CLASSES.map((_name, c) => Math.round(parameters[row * C + c]! * 1000) / 1000)
  return {
    bias: at(0),
    kinds: EVIDENCE_KINDS.map((_kind, bit) => at(bit + 1)),
    temperature: 1,
    calibration: NO_CALIBRATION,
  }
}

function logSum(values: readonly number[]): number {
  const max = Math.max(...values)
  return max + Math.log(values.reduce((sum, value) => sum + Math.exp(value - max), 0))
}

/**
 * The prior mean of a weight. A client's declaration about itself is believed; what a browser would not show
 * counts against a human.
 */
function expected(kind: EvidenceKind, name: Class): number {
  if (SELF_DECLARED_AGENT.has(kind)) return name === 'agent' ? 4 : 0
  if (kind === 'address-published') return name === 'agent' ? 4 : 0
  if (kind === 'fingerprint-of-agent') return name === 'agent' ? DECIDED : 0
  if (kind === 'browser-headers') return name === 'agent' ? DISGUISED : 0
  if (TOOL.has(kind)) return name === 'automation' ? 2 : 0
  if (KNOWN_AGENT.has(kind)) return name === 'agent' ? 2 : 0
  const habit = HABITS[kind]
  if (habit !== undefined) return habit[name] ?? 0
  // An imitator of a browser is an agent.
  const imitated = name === 'agent' ? 1 : 0
  if (kind === 'stack-unlike') return name === 'human' ? -1 : imitated
  if (SOFT_DISAGREEMENTS.has(kind)) return name === 'human' ? -SOFT : 0
  if (REMOVABLE.has(kind)) return name === 'human' ? -REMOVED : imitated
  if (DISAGREEMENTS.has(kind)) return name === 'human' ? -HARD : imitated
  return 0
}

const SELF_DECLARED_AGENT: ReadonlySet<EvidenceKind> = new Set<EvidenceKind>([
  'names-agent',
  'declares-bot',
  'headless',
  'agent-header',
  'mcp-request',
  'agent-card',
  'oauth-discovery',
])
const KNOWN_AGENT: ReadonlySet<EvidenceKind> = new Set<EvidenceKind>([
  'accepts-pages',
  'headers-of-agents',
  'certificate-of-agents',
])
const TOOL: ReadonlySet<EvidenceKind> = new Set<EvidenceKind>([
  'names-tool',
  'tool-header',
  'certificate-of-libraries',
])
/**
 * Crawlers do this, and people do not. Many addresses or many targets can also come from an app and its users
 * if nothing tells which targets are pages, so that alone does not make a client an agent.
 */
const HABITS: Readonly<Partial<Record<EvidenceKind, Readonly<Partial<Record<Class, number>>>>>> = {
  crawls: { agent: 3 },
  'asks-sitemap': { agent: 1 },
  'asks-broadly': { agent: 0.7, human: -1 },
  'asks-fast': { human: -2 },
  'asks-from-many': { agent: 0.5, human: -1 },
  campaign: { agent: 0.7, human: -1 },
}
/** How much a disagreement counts against a person: what a new version or a proxy changes, … */
const SOFT = 2
/** … what an extension removes, … */
const REMOVED = 3
/** … and what nothing makes a browser send. */
const HARD = 5
/** An admin's decision outweighs the library that the User-Agent and TLS show. */
const DECIDED = 12
/** A program that pretends to be a browser acts on its own, whatever library it names and uses. */
const DISGUISED = 9
const AGREEMENTS = EVIDENCE_KINDS.flatMap((kind, bit) => (kind.endsWith('-agrees') ? [bit + 1] : []))
const C = CLASSES.length
/** The bias first, then each kind. */
const MEANS = [
  ...CLASSES.map(() => 0),
  ...EVIDENCE_KINDS.flatMap((kind) => CLASSES.map((name) => expected(kind, name))),
]
const KNOTS_APART = 0.001
const SURE = 0.999
const GROUP_WEIGHT = 25
const TRUST = 2
const STEPS = 1500
const RATE = 0.1
