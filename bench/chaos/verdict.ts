import { descriptorsOf } from '../soak/sockets.ts'
import type { Ledger } from '../soak/ledger.ts'
import { until } from '../soak/until.ts'
import type { ApiFailure } from './api.ts'
import type { ChaosGateway } from './gateway.ts'
import type { Sample } from './readiness.ts'
import type { Round } from './rounds.ts'

/** What the probe said, against what it should have. */
export function readinessProblems(samples: readonly Sample[], rounds: readonly Round[]): readonly string[] {
  const problems: string[] = []
  for (const sample of samples) {
    const { isReady, said } = sample
    if (isReady === true) continue
    const within = rounds.filter((round) => isDuring(sample, round))
    const mayBe = within.some(({ disturbances }) => disturbances.some(({ readiness }) => readiness !== 'yes'))
    if (!mayBe) problems.push(`not ready (${said}), in ${within[0]?.name ?? 'no disturbance'}`)
  }
  for (const round of rounds) {
    if (!round.disturbances.some(({ readiness }) => readiness === 'no')) continue
    const said = samples.some((sample) => sample.isReady === false && isDuring(sample, round))
    if (!said) problems.push(`${round.name}: it never said that it is not ready`)
  }
  return problems
}

/** Some of it at least: what one disturbance lets begin may be ended by the next. */
function isDuring(asked: Stretch, round: Stretch): boolean {
  return asked.fromMs <= round.toMs && asked.toMs >= round.fromMs
}

interface Stretch {
  readonly fromMs: number
  readonly toMs: number
}

export function apiProblems(failures: readonly ApiFailure[], rounds: readonly Round[]): readonly string[] {
  return failures.flatMap((failure) => {
    const within = rounds.filter((round) => isDuring(failure, round))
    const mayBe = within.some(({ disturbances }) => disturbances.some(({ harmsApi }) => harmsApi))
    return mayBe ? [] : [`the API, in ${within[0]?.name ?? 'no disturbance'}: ${failure.what}`]
  })
}

/** The results of requests other than those of the clients: how many were sent, and had their answer for certain. */
export interface Asked {
  readonly asked: number
  readonly answered: number
}

/**
 * How many requests statistics have at least. A process that is killed takes with it what it has recorded and not
 * delivered: a beat of 200 ms, and what had to wait because the database or the manager was away at the same time.
 */
export function leastCounted(ledger: Ledger, { answered }: Asked, rounds: readonly Round[]): number {
  const lossy = rounds.filter(({ disturbances }) => disturbances.some(({ losesSightings }) => losesSightings))
  const lost = lossy.map(({ fromMs, toMs }) => ledger.answersBetween(fromMs - UNSENT_MS, toMs))
  return ledger.total('right') + answered - lost.reduce((sum, count) => sum + count, 0)
}

/** Statistics against what was answered. */
export function statisticsProblems(
  counted: number,
  ledger: Ledger,
  beside: Asked,
  rounds: readonly Round[],
): readonly string[] {
  const right = ledger.total('right') + beside.answered
  const sent = ledger.total(null) + beside.asked
  const least = leastCounted(ledger, beside, rounds)
  if (counted < least)
    return [`statistics have ${counted} requests, ${right} were answered, ${least} of them for certain`]
  return counted > sent ? [`statistics have ${counted} requests, and ${sent} were sent`] : []
}

/** Processes of gateways that were, and descriptors of the one that is. */
export async function leftovers(
  gateway: ChaosGateway,
  descriptorsBefore: number,
): Promise<readonly string[]> {
  const { current, workers } = gateway
  const now = new Set([current.pid, ...workers])
  const old = () => gateway.processes.filter((pid) => !now.has(pid))
  await until(() => old().length === 0, GONE_MS_MAX)
  const problems = old().map((pid) => `process ${pid} has stayed`)
  const descriptors = descriptorsOf(current.pid).length
  if (descriptors > descriptorsBefore + DESCRIPTORS_SLACK)
    problems.push(`the manager had ${descriptorsBefore} descriptors and has ${descriptors}`)
  return problems
}

/** Tallies come every half a second, and Sightings leave every 200 ms. */
const UNSENT_MS = 1500
/** Old workers have the time of a drain. */
const GONE_MS_MAX = 40_000
/** Files that it looks at now and then. */
const DESCRIPTORS_SLACK = 8
