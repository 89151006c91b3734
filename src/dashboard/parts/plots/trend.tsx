import { short } from '../format.ts'

interface Props {
  /** What is counted, for screen readers: `requests`. */
  readonly label: string
  /** Oldest first. */
  readonly counts: readonly number[]
}

/** The course of a number in time, as a small line. It begins at zero, and its end is marked. */
export function Trend({ label, counts }: Props) {
  const most = Math.max(1, ...counts)
  const step = WIDTH / Math.max(1, counts.length - 1)
  const y = (count: number) => HEIGHT - EDGE - (count / most) * (HEIGHT - 2 * EDGE)
  const points = counts.map((count, at) => `${(at * step).toFixed(1)},${y(count).toFixed(1)}`)
  const last = counts.at(-1) ?? 0
  const text = `${label}: at first ${short(counts[0] ?? 0)}, at most ${short(Math.max(0, ...counts))}, now ${short(last)}`
  return (
    <svg class="trend" viewBox={`0 0 ${WIDTH + 2 * EDGE} ${HEIGHT}`} role="img" aria-label={text}>
      <title>{text}</title>
      <polyline points={points.join(' ')} />
      <circle cx={WIDTH} cy={y(last)} r={EDGE} />
    </svg>
  )
}

const WIDTH = 96
const HEIGHT = 24
const EDGE = 2
