/** Parses `500ms`, `10s`, `2m`, `1h`, `7d` and `0` into milliseconds; `null` for anything else. */
export function parseDurationMs(text: string): number | null {
  if (text === '0') return 0
  const [, number, unit] = DURATION.exec(text) ?? []
  return unit === undefined ? null : Number(number) * MILLISECONDS.get(unit)!
}

/** At most nine digits: more are a mistake in any unit, and the result would no longer be exact. */
const DURATION = /^(\d{1,9})(ms|s|m|h|d)$/
const MILLISECONDS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])
