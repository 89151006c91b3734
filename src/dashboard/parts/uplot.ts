import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { painted } from './colours.ts'
import { short } from './format.ts'

export interface ChartLine {
  readonly label: string
  /** Name of a style colour. */
  readonly colour: string
  readonly values: readonly number[]
}

export interface PlotShape {
  readonly lines: readonly ChartLine[]
  readonly words: readonly string[] | null
  readonly isStacked: boolean
  readonly isBars: boolean
}

/** A separate file, loaded only if there is something to plot. */
export function makePlot(shape: PlotShape, data: uPlot.AlignedData, element: HTMLElement): uPlot {
  const { lines, words, isStacked, isBars } = shape
  const drawn = isStacked ? [...lines].reverse() : lines
  const paths = isBars ? uPlot.paths.bars!({ size: [0.7, 60] }) : uPlot.paths.linear!()
  return new uPlot(
    {
      width: element.clientWidth,
      height: element.clientHeight,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: {
        x: { time: words === null, ...(words !== null && { range: [-0.5, words.length - 0.5] }) },
        y: { range: (_, _min, max) => [0, Math.max(max * 1.05, 1)] },
      },
      axes: [
        {
          ...AXIS,
          ...(words === null && {
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
          stroke: () => painted(colour),
          ...((isStacked || isBars) && { fill: () => painted(colour) }),
        })),
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
  /** Name of a style colour. */
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
    [dots.map((dot) => dot.x), dots.map((dot) => dot.y)],
    element,
  )
}

function around(_: uPlot, min: number, max: number): [number, number] {
  return [Math.min(0, min), max + 2]
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

const DATE = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
const MINUTES = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const SECONDS = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const AXIS: uPlot.Axis = {
  stroke: () => painted('soft-text'),
  grid: { stroke: () => painted('line'), width: 1 },
  ticks: { stroke: () => painted('line'), width: 1 },
  font: '12px system-ui, sans-serif',
}
