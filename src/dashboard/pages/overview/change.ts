import type { Statistics } from '../../api/operations.ts'
import { percent } from '../../parts/format.ts'

/** A count compared with the one before, in words. */
export function changeOf(now: number, before: number): string {
  if (now === before) return 'as before'
  if (before === 0) return 'none before'
  const share = Math.abs(now - before) / before
  const much = share >= 10 ? 'over ten times' : percent(share)
  return `${much} ${now > before ? 'more' : 'less'}`
}

/** Whether the whole window before was counted. */
export function isBeforeKnown({ previous, counted_since }: Statistics): boolean {
  const first = previous?.series[0]
  return first !== undefined && counted_since !== null && counted_since <= first.at
}

/** The requests of the window before, at the place of the buckets of this one. `null`: unknown. */
export function beforeValues({ previous, counted_since }: Statistics): readonly (number | null)[] {
  return (previous?.series ?? []).map(({ at, requests }) =>
    counted_since === null || at < counted_since ? null : requests,
  )
}

/** A value for each bucket; `null`: of a time of which nothing is known. */
export function knownValues(
  { series, counted_since }: Pick<Statistics, 'series' | 'counted_since'>,
  countOf: (bucket: Statistics['series'][number]) => number,
): readonly (number | null)[] {
  return series.map((bucket) =>
    counted_since === null || bucket.at < counted_since ? null : countOf(bucket),
  )
}
