import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import { full, short, whole } from './format.ts'
import type { ChartLine } from './uplot.ts'
import { useCanvas } from './use-canvas.ts'
import { Table } from './table.tsx'

interface Props {
  readonly title: string
  /** Seconds since 1970, or any numbers if `words` labels them. */
  readonly at: readonly number[]
  readonly lines: readonly ChartLine[]
  /** Labels of the horizontal axis, if it is not time. */
  readonly words?: readonly string[]
  readonly isStacked?: boolean
  readonly isBars?: boolean
  /** A text alternative for people who cannot see the plot; the default is the sum of each line. */
  readonly summary?: string
}

/** A plot over time or over labels. The same numbers are available as a table. */
export function Plot({ title, at, lines, words, isStacked = false, isBars = false, summary }: Props) {
  const [asTable, setAsTable] = useState(false)
  const data = dataOf(at, lines, isStacked)
  const latest = useRef(data)
  latest.current = data
  const look = lines.map(({ label, colour }) => [label, colour])
  const shape = JSON.stringify([look, words, isStacked, isBars, asTable])
  const { place, plot } = useCanvas(shape, ({ makePlot }, element) =>
    makePlot({ lines, words: words ?? null, isStacked, isBars }, latest.current, element),
  )
  useEffect(() => plot.current?.setData(data), [data])
  return (
    <figure class="plot">
      <figcaption>
        <strong>{title}</strong>
        <ul class="legend">
          {lines.map(({ label, colour }) => (
            <li key={label}>
              <span class="swatch" style={{ background: `var(--${colour})` }} /> {label}
            </li>
          ))}
        </ul>
        <button type="button" class="quiet" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          Table
        </button>
      </figcaption>
      {asTable ? (
        <Numbers {...{ title, at, lines, words: words ?? null }} />
      ) : (
        <div class="canvas" role="img" aria-label={`${title}: ${summary ?? sumsOf(lines)}`} ref={place} />
      )}
    </figure>
  )
}

interface NumbersProps {
  readonly title: string
  readonly at: readonly number[]
  readonly lines: readonly ChartLine[]
  readonly words: readonly string[] | null
}

function Numbers({ title, at, lines, words }: NumbersProps) {
  return (
    <Table
      label={title}
      rows={at}
      keyOf={String}
      columns={[
        {
          title: words === null ? 'Time' : 'Range',
          cell: (x, index) => words?.[index] ?? full(new Date(x * 1_000).toISOString()),
        },
        ...lines.map(({ label, values }) => ({
          title: label,
          isNumber: true,
          cell: (_: number, index: number) => whole(values[index] ?? 0),
        })),
      ]}
    />
  )
}

/** Stacked lines are drawn as sums, largest first, so that each covers the previous one. */
function dataOf(at: readonly number[], lines: readonly ChartLine[], isStacked: boolean): uPlot.AlignedData {
  const below = at.map(() => 0)
  const drawn = lines.map(({ values }) =>
    isStacked
      ? values.map((value, index) => {
          below[index] = below[index]! + value
          return below[index]!
        })
      : [...values],
  )
  return [[...at], ...(isStacked ? drawn.reverse() : drawn)]
}

function sumsOf(lines: readonly ChartLine[]): string {
  return lines
    .map(({ label, values }) => `${label} ${short(values.reduce((sum, value) => sum + value, 0))}`)
    .join(', ')
}
