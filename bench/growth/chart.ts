/** What a request costs at one size of something. */
export interface Point {
  readonly size: number
  readonly micros: number
}

/** Both axes by powers, so that what grows with the size is a straight line of slope one, and what does not a level one. */
export function chart(title: string, unit: string, points: readonly Point[]): string {
  const x = scale(
    points.map(({ size }) => size),
    LEFT,
    WIDTH - RIGHT,
  )
  const y = scale(
    points.map(({ micros }) => micros),
    HEIGHT - BOTTOM,
    TOP,
  )
  const dots = points.map(
    ({ size, micros }) =>
      `<circle cx="${x(size)}" cy="${y(micros)}" r="3"/>` +
      `<text x="${x(size)}" y="${y(micros) - 8}" text-anchor="middle">${micros.toFixed(1)}</text>` +
      `<text x="${x(size)}" y="${HEIGHT - BOTTOM + 16}" text-anchor="middle">${short(size)}</text>`,
  )
  const line = points.map(({ size, micros }) => `${x(size)},${y(micros)}`).join(' ')
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" font-family="sans-serif" font-size="11">
<title>${title}: µs of processor a request</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
<text x="${LEFT}" y="18" font-size="13">${title}: µs of processor a request</text>
<polyline points="${line}" fill="none" stroke="#2f6f9f" stroke-width="2"/>
<g fill="#1d4560">${dots.join('\n')}</g>
<text x="${WIDTH / 2}" y="${HEIGHT - 6}" text-anchor="middle">${unit}</text>
</svg>
`
}

function scale(values: readonly number[], from: number, to: number): (value: number) => number {
  const logs = values.map((value) => Math.log(Math.max(value, 1)))
  const low = Math.min(...logs)
  // At least a tenfold range, so that noise does not look like growth.
  const span = Math.max(Math.max(...logs) - low, Math.log(10))
  return (value) => Math.round(from + ((Math.log(Math.max(value, 1)) - low) / span) * (to - from))
}

function short(size: number): string {
  if (size >= 1_048_576 && size % 1_048_576 === 0) return `${size / 1_048_576}Mi`
  if (size >= 1024 && size % 1024 === 0) return `${size / 1024}Ki`
  return size >= 1000 ? `${size / 1000}k` : String(size)
}

const WIDTH = 640
const HEIGHT = 280
const LEFT = 40
const RIGHT = 40
const TOP = 50
const BOTTOM = 44
