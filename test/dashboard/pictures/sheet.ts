import type { Page } from 'playwright-core'

/** Pictures of one scene, each in a look, as PNG. */
export type Shots = readonly Buffer[]

/** How much two sheets differ. */
export interface Difference {
  /** The share of blocks with another colour, in the look that differs most. */
  readonly share: number
  /** That look, counted from 0. */
  readonly look: number
}

/**
 * Draws all looks of a scene beside each other, small: a picture of a few kilobytes in which a person still sees what a
 * page looks like. It is made by the browser, so that no program for pictures is needed.
 */
export async function sheetOf(page: Page, shots: Shots): Promise<Buffer> {
  const made = await page.evaluate(
    `(${DRAWN})(${JSON.stringify(shots.map(base64))}, ${JSON.stringify(FORM)})`,
  )
  return Buffer.from(made as string, 'base64')
}

/** Compares the means of blocks: another font or another way to smooth it changes few of them, a lost part many. */
export async function differenceOf(
  page: Page,
  recorded: Buffer,
  fresh: Buffer,
  block: number,
): Promise<Difference> {
  const given = JSON.stringify([base64(recorded), base64(fresh)])
  const found = await page.evaluate(
    `(${COMPARED})(${given}, ${JSON.stringify({ ...FORM, block, most: COLOUR_MOST })})`,
  )
  return found as Difference
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64')
}

/** The widths of the looks in a sheet: two rows of three. */
const FORM = { widths: [360, 300, 130], height: 300, quality: 0.7 }
/** Of 255: how far the mean of a block may be from the recorded one. */
const COLOUR_MOST = 24
const BITMAP = `const bitmap = async (data) => createImageBitmap(await (await fetch('data:image/png;base64,' + data)).blob())`
const DRAWN = `async (shots, { widths, height, quality }) => {
  ${BITMAP}
  const canvas = new OffscreenCanvas(widths.reduce((sum, each) => sum + each), 2 * height)
  const drawing = canvas.getContext('2d')
  drawing.imageSmoothingQuality = 'high'
  let [x, y] = [0, 0]
  for (const [at, shot] of shots.entries()) {
    const width = widths[at % widths.length]
    const image = await bitmap(shot)
    const shown = Math.min(image.height, Math.round(height * image.width / width))
    drawing.drawImage(image, 0, 0, image.width, shown, x, y, width, Math.round(shown * width / image.width))
    x += width
    if (at % widths.length === widths.length - 1) [x, y] = [0, y + height]
  }
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/webp', quality })).arrayBuffer())
  let text = ''
  for (const each of bytes) text += String.fromCharCode(each)
  return btoa(text)
}`
const COMPARED = `async ([recorded, fresh], { widths, height, block, most }) => {
  ${BITMAP}
  const pixels = async (data) => {
    const image = await bitmap(data)
    const drawing = new OffscreenCanvas(image.width, image.height).getContext('2d')
    drawing.drawImage(image, 0, 0)
    return drawing.getImageData(0, 0, image.width, image.height)
  }
  const [one, other] = [await pixels(recorded), await pixels(fresh)]
  if (one.width !== other.width || one.height !== other.height) return { share: 1, look: 0 }
  const mean = ({ data, width }, left, top) => {
    const sum = [0, 0, 0]
    for (let y = top; y < top + block; y++)
      for (let x = left; x < left + block; x++)
        for (let c = 0; c < 3; c++) sum[c] += data[4 * (y * width + x) + c]
    return sum.map((each) => each / (block * block))
  }
  let worst = { share: 0, look: 0 }
  let left = 0
  for (const [at, width] of [...widths, ...widths].entries()) {
    if (at === widths.length) left = 0
    const top = at < widths.length ? 0 : height
    let [all, differing] = [0, 0]
    for (let y = top; y + block <= top + height; y += block)
      for (let x = left; x + block <= left + width; x += block) {
        const there = mean(other, x, y)
        all++
        if (mean(one, x, y).some((each, c) => Math.abs(each - there[c]) > most)) differing++
      }
    if (differing / all > worst.share) worst = { share: differing / all, look: at }
    left += width
  }
  return worst
}`
