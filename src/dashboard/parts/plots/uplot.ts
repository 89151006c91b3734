import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { painted } from './colours.ts'
import { short } from '../format.ts'
import { type ChartLine, stepOf } from './plot-data.ts'

export interface PlotShape {
  readonly lines: readonly ChartLine[]
  /** Drawn over the others, as a dashed line. */
  readonly behind: ChartLine | null
  readonly words: readonly string[] | null
  readonly isStacked: boolean
  readonly isBars: boolean
  /** Called with the place under the pointer, or `null`, and how far right it is, from 0 to 1. */
  pointed(index: number | null, left: number): void
}

/** A separate file, loaded only if there is something to plot. */
export function makePlot(shape: PlotShape, data: uPlot.AlignedData, element: HTMLElement): uPlot {
  const { lines, behind, words, isStacked, isBars, pointed } = shape
  const drawn = isStacked ? [...lines].reverse() : lines
  // The bar of an interval begins at the time at which the interval begins.
  const isOfIntervals = isBars && words === null
  const paths = isOfIntervals
    ? uPlot.paths.bars!({ size: [0.85, Infinity], align: 1 })
    : isBars
      ? uPlot.paths.bars!({ size: [0.7, 60] })
      : uPlot.paths.linear!()
  return new uPlot(
    {
      width: element.clientWidth,
      height: element.clientHeight,
      legend: { show: false },
      cursor: {
        ...{ y: false, points: { show: false }, drag: { x: false, y: false } },
        // An interval is pointed at from its begin to its end.
        ...(isOfIntervals && { dataIdx: beginOf }),
      },
      hooks: {
        setCursor: [
          ({ cursor: { idx = null, left = -1 }, over }) =>
            pointed(left < 0 ? null : idx, left / over.clientWidth),
        ],
      },
      scales: {
        x: {
          time: words === null,
          ...(words !== null && { range: [-0.5, words.length - 0.5] }),
          ...(isOfIntervals && { range: wholeIntervals }),
        },
        y: { range: (_, _min, max) => [0, Math.max(max * 1.05, 1)] },
      },
      axes: [
        {
          ...AXIS,
          ...(words === null && {
            space: timeSpace,
            values: (_: uPlot, splits: number[], ...[, , step]: number[]) => moments(splits, step!),
          }),
          ...(words !== null && {
            splits: () => words.map((_, index) => index),
            values: (_: uPlot, splits: number[]) => splits.map((index) => words[index] ?? ''),
          }),
        },
        {
          ...AXIS,
          size: 56,
          values: (_, splits) => splits.map((each) => (each % 1 === 0 ? short(each) : '')),
        },
      ],
      series: [
        {},
        ...drawn.map(({ label, colour }) => ({
          label,
          paths,
          points: { show: false },
          width: isStacked ? 1 : 2,
          // Bars on top of each other are set apart by a line.
          stroke: () => painted(isStacked && isBars ? 'card' : colour),
          ...((isStacked || isBars) && { fill: () => painted(colour) }),
        })),
        ...(behind === null
          ? []
          : [
              {
                label: behind.label,
                paths: isOfIntervals ? uPlot.paths.stepped!({ align: 1 }) : uPlot.paths.linear!(),
                points: { show: false },
                ...{ width: 2, dash: [6, 4] },
                stroke: () => painted(behind.colour),
              },
            ]),
      ],
    },
    data,
    element,
  )
}

export interface Dot {
  readonly x: number
  readonly y: number
  /** Radius in pixels. */
  readonly size: number
  /** Name of a colour of style/palette.css. */
  readonly colour: string
}

export interface Dots {
  readonly x: string
  readonly y: string
  /** The first dots are drawn at the bottom. */
  readonly dots: readonly Dot[]
  /** Called with the dot under the pointer, or `null`. */
  pointed(index: number | null): void
}

/** The interval in which the pointer is. */
function beginOf(plot: uPlot, _series: number, nearest: number, x: number): number {
  const [at] = plot.data
  return at[nearest]! > x ? Math.max(0, nearest - 1) : nearest
}

/** The last interval ends after its time. */
function wholeIntervals(plot: uPlot, min: number, max: number): [number, number] {
  return [min, max + stepOf(plot.data[0])]
}

/** Dots between two numeric axes. */
export function makeDots({ x, y, dots, pointed }: Dots, element: HTMLElement): uPlot {
  const near = (plot: uPlot, left: number, top: number): number | null => {
    let [best, distance] = [null as number | null, POINTED_AT]
    for (const [index, dot] of dots.entries()) {
      const away = Math.hypot(plot.valToPos(dot.x, 'x') - left, plot.valToPos(dot.y, 'y') - top) - dot.size
      if (away <= distance) [best, distance] = [index, away]
    }
    return best
  }
  // The plot takes the first and the last one as the ends of the axis.
  const sorted = [...dots].sort((one, other) => one.x - other.x)
  return new uPlot(
    {
      ...{ width: element.clientWidth, height: element.clientHeight, legend: { show: false } },
      cursor: { drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: false, range: around }, y: { range: around } },
      axes: [
        { ...AXIS, label: x },
        { ...AXIS, label: y },
      ],
      series: [{}, { show: true, paths: () => null, points: { show: false } }],
      hooks: {
        draw: [(plot) => drawDots(plot, dots)],
        ready: [
          (plot) => {
            plot.over.addEventListener('mousemove', ({ offsetX, offsetY }) =>
              pointed(near(plot, offsetX, offsetY)),
            )
            plot.over.addEventListener('mouseleave', () => pointed(null))
          },
        ],
      },
    },
    [sorted.map((dot) => dot.x), sorted.map((dot) => dot.y)],
    element,
  )
}

/** With room for the size of the dots, on a narrow screen too. */
function around(_: uPlot, min: number, max: number): [number, number] {
  return [Math.min(0, min), max + Math.max(2, max / 10)]
}

function drawDots(plot: uPlot, dots: readonly Dot[]): void {
  const { ctx } = plot
  const ratio = devicePixelRatio
  ctx.save()
  ctx.globalAlpha = 0.75
  for (const { x, y, size, colour } of dots) {
    ctx.fillStyle = painted(colour)
    ctx.beginPath()
    ctx.arc(plot.valToPos(x, 'x', true), plot.valToPos(y, 'y', true), size * ratio, 0, 2 * Math.PI)
    ctx.fill()
  }
  ctx.restore()
}

/** Tolerance around a dot, in pixels. */
const POINTED_AT = 6

/** The least pixels from one time label to the next: labels have seconds if there are several in a minute. */
function timeSpace(_: uPlot, _axis: number, minS: number, maxS: number, pixels: number): number {
  const secondsApart = ((maxS - minS) / pixels) * SPACE_WITH_SECONDS
  return secondsApart > 30 ? SPACE_OF_MINUTES : SPACE_WITH_SECONDS
}

/** Time labels, as short as the step allows, with the day where it changes. */
function moments(splits: readonly number[], stepS: number): string[] {
  let day = ''
  return splits.map((atS) => {
    const at = new Date(atS * 1_000)
    const date = DATE.format(at)
    const isOther = date !== day
    day = date
    if (stepS >= 86_400) return date
    const time = (stepS < 60 ? SECONDS : MINUTES).format(at)
    return isOther ? `${time}\n${date}` : time
  })
}

/** `00:00:00` */
const SPACE_WITH_SECONDS = 80
/** `00:00`, or `30 Nov` below it. */
const SPACE_OF_MINUTES = 44
const DATE = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
const MINUTES = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const SECONDS = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const AXIS: uPlot.Axis = {
  stroke: () => painted('soft-text'),
  grid: { stroke: () => painted('line'), width: 1 },
  ticks: { stroke: () => painted('line'), width: 1 },
  font: '12px system-ui, sans-serif',
}
