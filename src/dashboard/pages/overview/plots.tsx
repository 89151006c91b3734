import type { Statistics } from '../../api/operations.ts'
import { WINDOW_WORDS } from '../../parts/chosen/window.ts'
import { Plot } from '../../parts/plots/plot.tsx'
import { CATEGORIES, VERDICTS } from '../live/names.ts'
import { beforeValues, knownValues } from './change.ts'

interface Props {
  readonly statistics: Statistics
}

/** All requests, with those of the window before as a line. */
export function VerdictPlot({ statistics }: Props) {
  const { window, series } = statistics
  return (
    <Plot
      title="Requests by verdict"
      at={timesOf(series)}
      isStacked
      isBars
      lines={VERDICTS.map(({ verdict, label, colour }) => ({
        ...{ label, colour },
        values: knownValues(statistics, ({ by_verdict }) => by_verdict[verdict] ?? 0),
      }))}
      behind={{
        label: `All, ${WINDOW_WORDS[window]} before`,
        colour: 'previous',
        values: beforeValues(statistics),
      }}
    />
  )
}

export function CategoryPlot({ statistics }: Props) {
  return (
    <Plot
      title="Agents by category"
      at={timesOf(statistics.series)}
      isStacked
      isBars
      lines={CATEGORIES.map(({ category, label, colour }) => ({
        ...{ label, colour },
        values: knownValues(statistics, ({ by_category }) => by_category[category] ?? 0),
      }))}
    />
  )
}

/** Confidence of verdicts, by tenths. */
export function Confidence({ by }: { readonly by: Statistics['detection']['by_confidence'] }) {
  const tenths = Object.keys(by).sort()
  return (
    <Plot
      title="Confidence of verdicts"
      at={tenths.map((_, place) => place)}
      words={tenths}
      isBars
      lines={[{ label: 'Requests', colour: 'requests', values: tenths.map((tenth) => by[tenth] ?? 0) }]}
    />
  )
}

function timesOf(series: Statistics['series']): readonly number[] {
  return series.map(({ at }) => Date.parse(at) / 1_000)
}
