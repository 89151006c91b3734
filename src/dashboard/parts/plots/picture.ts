import { painted } from './colours.ts'
import type { ChartLine } from './plot-data.ts'

/** A plot as a PNG file, with its title and its legend, in the colours of the page. */
export async function pictureOf(
  plot: HTMLCanvasElement,
  title: string,
  lines: readonly ChartLine[],
): Promise<Blob> {
  const scale = devicePixelRatio
  const canvas = document.createElement('canvas')
  const context = canvas.getContext('2d')!
  const rows = [...legendRows(context, lines, plot.width / scale - 2 * EDGE)]
  const head = TITLE_HEIGHT + rows.length * ROW_HEIGHT + EDGE
  canvas.width = plot.width
  canvas.height = plot.height + head * scale
  context.fillStyle = painted('card')
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.drawImage(plot, 0, head * scale)
  context.scale(scale, scale)
  context.textBaseline = 'middle'
  context.fillStyle = painted('text')
  context.font = `bold ${FONT}`
  context.fillText(title, EDGE, TITLE_HEIGHT / 2 + EDGE / 2)
  context.font = FONT
  for (const { line, left, row } of rows.flat()) {
    const middle = TITLE_HEIGHT + ROW_HEIGHT * (row + 0.5)
    context.fillStyle = painted(line.colour)
    context.fillRect(left, middle - SWATCH / 2, SWATCH, SWATCH)
    context.fillStyle = painted('soft-text')
    context.fillText(line.label, left + SWATCH + GAP, middle)
  }
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob === null ? reject(new Error('the picture is empty')) : resolve(blob))),
  )
}

interface Placed {
  readonly line: ChartLine
  readonly left: number
  readonly row: number
}

/** As many labels in a row as have room. */
function* legendRows(
  context: CanvasRenderingContext2D,
  lines: readonly ChartLine[],
  width: number,
): Generator<readonly Placed[]> {
  context.font = FONT
  let [row, right] = [0, 0]
  let placed: Placed[] = []
  for (const line of lines) {
    const needed = SWATCH + GAP + context.measureText(line.label).width + 2 * GAP
    if (placed.length > 0 && right + needed > width) {
      yield placed
      ;[row, right, placed] = [row + 1, 0, []]
    }
    placed.push({ line, left: EDGE + right, row })
    right += needed
  }
  yield placed
}

const FONT = '14px system-ui, sans-serif'
const EDGE = 12
const TITLE_HEIGHT = 28
const ROW_HEIGHT = 20
const SWATCH = 12
const GAP = 6
