import { short, whole } from '../format.ts'

export interface ChartLine {
  readonly label: string
  /** Name of a colour of style/palette.css. */
  readonly colour: string
  /** `null`: unknown, drawn as a gap. */
  readonly values: readonly (number | null)[]
}

export type PlotData = [x: number[], ...lines: (number | null)[][]]

interface Drawing {
  readonly isStacked: boolean
  readonly isBars: boolean
  /** Drawn last, over the others. */
  readonly behind?: ChartLine | null
}

/**
 * Stacked lines are drawn as sums, largest first, so that each covers the previous one. A bar of height 0 is not drawn:
 * its edge would be.
 */
export function plotData(
  at: readonly number[],
  lines: readonly ChartLine[],
  { isStacked, isBars, behind = null }: Drawing,
): PlotData {
  const below = at.map(() => 0)
  const drawn = lines.map(({ values }) =>
    isStacked
      ? values.map((value, index) => {
          if (value === null) return null
          below[index] = below[index]! + value
          return below[index]!
        })
      : [...values],
  )
  const shown = isBars ? drawn.map((line) => line.map((value) => (value === 0 ? null : value))) : drawn
  const all = isStacked ? shown.reverse() : shown
  return [[...at], ...all, ...(behind === null ? [] : [[...behind.values]])]
}

/** The sum of each line, in words. */
export function sumsOf(lines: readonly ChartLine[]): string {
  return lines
    .map(({ label, values }) => {
      const sum = values.reduce<number>((total, value) => total + (value ?? 0), 0)
      return `${label} ${short(Math.round(sum))}`
    })
    .join(', ')
}

/** To a tenth. */
export function valueText(value: number | null | undefined): string {
  return value === null || value === undefined ? 'unknown' : whole(Math.round(value * 10) / 10)
}

/** The time from one bucket to the next. */
export function stepOf(at: ArrayLike<number>): number {
  return at.length < 2 ? 1 : at[1]! - at[0]!
}
