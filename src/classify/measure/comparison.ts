import type { Verdict } from '../verdict/verdict.ts'
import { truthOf } from './truth.ts'

/** The verdict of one release on one recorded connection. */
export interface RowVerdict {
  readonly id: string
  readonly client: string
  readonly label: string
  readonly verdict: Verdict['kind']
  /** `null`: unknown, by a release that does not say it. */
  readonly confidence: number | null
  /** The id of the named software. `null`: not named. Absent: unknown, by a release that does not say it. */
  readonly software?: string | null
}

/** `other`: as right or as wrong as before, but with another verdict or another name. */
export type ChangeKind = 'worse' | 'better' | 'other'

export interface RowChange {
  readonly id: string
  readonly client: string
  readonly label: string
  readonly change: ChangeKind
  readonly before: Pick<RowVerdict, 'verdict' | 'confidence' | 'software'>
  readonly after: Pick<RowVerdict, 'verdict' | 'confidence' | 'software'>
}

export interface LabelChanges {
  n: number
  right_before: number
  right: number
  worse: number
  better: number
  other: number
}

export interface Comparison {
  readonly labels: Readonly<Record<string, LabelChanges>>
  /** Worse first, then better. */
  readonly changes: readonly RowChange[]
  /** Connections of which only one release has a verdict. */
  readonly unmatched: number
}

/** Compares the verdicts of an earlier release with those of this one, connection by connection. */
export function compareVerdicts(before: readonly RowVerdict[], after: readonly RowVerdict[]): Comparison {
  const earlier = new Map<string, RowVerdict[]>()
  for (const each of before) earlier.set(keyOf(each), [...(earlier.get(keyOf(each)) ?? []), each])
  const labels = new Map<string, LabelChanges>()
  const changes: RowChange[] = []
  let matched = 0
  for (const now of after) {
    const then = earlier.get(keyOf(now))?.shift()
    if (then === undefined) continue
    matched++
    const counts = labels.get(now.label) ?? { n: 0, right_before: 0, right: 0, worse: 0, better: 0, other: 0 }
    labels.set(now.label, counts)
    counts.n++
    if (isRight(then)) counts.right_before++
    if (isRight(now)) counts.right++
    const change = changeOf(then, now)
    if (change === null) continue
    counts[change]++
    const { id, client, label } = now
    changes.push({ id, client, label, change, before: shown(then), after: shown(now) })
  }
  return {
    labels: Object.fromEntries(labels),
    changes: changes.toSorted((one, two) => ORDER.indexOf(one.change) - ORDER.indexOf(two.change)),
    unmatched: before.length + after.length - 2 * matched,
  }
}

function changeOf(then: RowVerdict, now: RowVerdict): ChangeKind | null {
  if (isRight(then) !== isRight(now)) return isRight(now) ? 'better' : 'worse'
  if (then.verdict !== now.verdict) return 'other'
  return then.software !== undefined && then.software !== now.software ? 'other' : null
}

function isRight({ label, verdict }: RowVerdict): boolean {
  return truthOf(label) === verdict
}

function shown({ verdict, confidence, software }: RowVerdict): RowChange['before'] {
  return software === undefined ? { verdict, confidence } : { verdict, confidence, software }
}

/** Two recordings may have the same id. */
function keyOf({ id, client, label }: RowVerdict): string {
  return JSON.stringify([id, client, label])
}

const ORDER: readonly ChangeKind[] = ['worse', 'better', 'other']
