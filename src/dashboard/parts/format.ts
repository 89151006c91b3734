/** `1,234`, `12.3k`, `4.5M`: short enough to read at a glance. */
export function short(count: number): string {
  return count < 10_000 ? WHOLE.format(count) : COMPACT.format(count)
}

export function whole(count: number): string {
  return WHOLE.format(count)
}

/** `12 %`, for a share from 0 to 1; small shares above zero are `< 1 %`. */
export function percent(share: number): string {
  if (share > 0 && share < 0.01) return '< 1 %'
  return share < 1 && share > 0.99 ? '> 99 %' : `${Math.round(share * 100)} %`
}

/** `3 minutes ago`. */
export function ago(time: string, nowMs: number): string {
  const s = Math.round((Date.parse(time) - nowMs) / 1_000)
  const [unit, length] = UNITS.find(([, seconds]) => Math.abs(s) >= seconds) ?? SECOND
  return RELATIVE.format(Math.round(s / length), unit)
}

/** In the reader's time zone, which is shown. */
export function full(time: string): string {
  return FULL.format(new Date(time))
}

/** Time of day. */
export function clock(time: string | number): string {
  return CLOCK.format(new Date(time))
}

/** `1.5 s`, `20 ms`, `3 min`, `2 h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const s = ms / 1_000
  if (s < 60) return `${Math.round(s * 10) / 10} s`
  if (s < 3_600) return `${Math.round(s / 60)} min`
  return s < 172_800 ? `${Math.round(s / 3_600)} h` : `${Math.round(s / 86_400)} days`
}

/** `1 request`, `2 requests`. */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : several}`
}

const WHOLE = new Intl.NumberFormat('en')
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })
const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const FULL = new Intl.DateTimeFormat('en-GB', {
  ...{ year: 'numeric', month: 'short', day: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' },
})
const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const SECOND = ['second', 1] as const
const UNITS = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const
