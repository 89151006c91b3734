import { useEffect, useRef, useState } from 'preact/hooks'
import { csv } from '../../../shared/csv.ts'
import { save } from '../download.tsx'
import { full } from '../format.ts'
import { type ChartLine, plotData, sumsOf, valueText } from './plot-data.ts'
import { useCanvas } from './use-canvas.ts'
import { Table } from '../table.tsx'

interface Props {
  readonly title: string
  /** Seconds since 1970, or any numbers if `words` labels them. */
  readonly at: readonly number[]
  readonly lines: readonly ChartLine[]
  /** Labels of the horizontal axis, if it is not time. */
  readonly words?: readonly string[]
  readonly isStacked?: boolean
  /** For counts of intervals. Lines are for rates. */
  readonly isBars?: boolean
  /** To compare with: a dashed line over the others. */
  readonly behind?: ChartLine
  /** A text alternative for people who cannot see the plot; the default is the sum of each line. */
  readonly summary?: string
}

/** A plot over time or over labels. The same numbers are available as a table, and as files. */
export function Plot(props: Props) {
  const { title, at, words, isStacked = false, isBars = false, behind = null, summary } = props
  const [asTable, setAsTable] = useState(false)
  const [pointed, setPointed] = useState<Pointed | null>(null)
  const data = plotData(at, props.lines, { isStacked, isBars, behind })
  const latest = useRef(data)
  latest.current = data
  const lines = behind === null ? props.lines : [...props.lines, behind]
  const look = lines.map(({ label, colour }) => [label, colour])
  const shape = JSON.stringify([look, words, isStacked, isBars, asTable])
  const { place, plot } = useCanvas(shape, ({ makePlot }, element) =>
    makePlot(
      {
        ...{ lines: props.lines, behind, words: words ?? null, isStacked, isBars },
        pointed: (index, left) => setPointed(index === null ? null : { index, left }),
      },
      latest.current,
      element,
    ),
  )
  useEffect(() => plot.current?.setData(data), [data])
  const labelOf = (index: number) => words?.[index] ?? full(new Date(at[index]! * 1_000).toISOString())
  const asCsv = () => {
    const times = at.map((x, index) => words?.[index] ?? new Date(x * 1_000).toISOString())
    const rows = times.map((time, index) => [time, ...lines.map(({ values }) => values[index] ?? null)])
    const head = [words === undefined ? 'time' : 'range', ...lines.map(({ label }) => label)]
    save(`${fileName(title)}.csv`, new Blob([csv([head, ...rows])], { type: 'text/csv' }))
  }
  const asPng = async () => {
    const { pictureOf } = await import('./picture.ts')
    const { current } = plot
    if (current !== null) save(`${fileName(title)}.png`, await pictureOf(current.ctx.canvas, title, lines))
  }
  return (
    <figure class="plot">
      <figcaption>
        <strong>{title}</strong>
        <ul class="legend">
          {lines.map((line) => (
            <li key={line.label}>
              <Swatch line={line} isDashed={line === behind} /> {line.label}
            </li>
          ))}
        </ul>
        <span class="tools">
          <button type="button" class="quiet" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
            Table
          </button>
          <button type="button" class="quiet" aria-label={`${title} as CSV`} onClick={asCsv}>
            CSV
          </button>
          <button
            type="button"
            class="quiet"
            aria-label={`${title} as PNG`}
            disabled={asTable}
            onClick={() => void asPng()}
          >
            PNG
          </button>
        </span>
      </figcaption>
      {asTable ? (
        <Table
          label={title}
          rows={at}
          keyOf={String}
          columns={[
            { title: words === undefined ? 'Time' : 'Range', cell: (_, index) => labelOf(index) },
            ...lines.map(({ label, values }) => ({
              title: label,
              isNumber: true,
              cell: (_: number, index: number) => valueText(values[index]),
            })),
          ]}
        />
      ) : (
        <div class="plotted">
          <div class="canvas" role="img" aria-label={`${title}: ${summary ?? sumsOf(lines)}`} ref={place} />
          {pointed !== null && pointed.index < at.length && (
            <Tip pointed={pointed} title={labelOf(pointed.index)} lines={lines} />
          )}
        </div>
      )}
    </figure>
  )
}

/** The place under the pointer. */
interface Pointed {
  readonly index: number
  /** From 0, the left edge of the plot, to 1. */
  readonly left: number
}

interface TipProps {
  readonly pointed: Pointed
  readonly title: string
  readonly lines: readonly ChartLine[]
}

/** The values under the pointer. The table has the same for the keyboard and screen readers. */
function Tip({ pointed: { index, left }, title, lines }: TipProps) {
  return (
    <div
      class="tip"
      aria-hidden="true"
      style={left > 0.5 ? { right: `${100 - 100 * left + 2}%` } : { left: `${100 * left + 2}%` }}
    >
      <strong>{title}</strong>
      {lines.map((line) => (
        <div key={line.label}>
          <Swatch line={line} /> {line.label} <b>{valueText(line.values[index])}</b>
        </div>
      ))}
    </div>
  )
}

function Swatch({ line, isDashed = false }: { readonly line: ChartLine; readonly isDashed?: boolean }) {
  const colour = `var(--${line.colour})`
  return isDashed ? (
    <span class="swatch dashed" style={{ color: colour }} />
  ) : (
    <span class="swatch" style={{ background: colour }} />
  )
}

function fileName(title: string): string {
  return title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
}
