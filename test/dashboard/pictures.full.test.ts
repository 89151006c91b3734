import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { test } from 'tap'
import { ARE_REQUIRED, skipped } from '../e2e/programs.ts'
import { type Machine, openGallery } from './pictures/gallery.ts'
import { RECORDED } from './pictures/record.ts'
import { SCENES } from './pictures/scenes.ts'
import { differenceOf } from './pictures/sheet.ts'

const NOT_BUILT =
  !existsSync('dist/dashboard/index.html') && 'the dashboard is not built: npm run build:dashboard'
const NOT_RECORDED =
  !existsSync(new URL('machine.json', RECORDED)) && 'no pictures are recorded yet: npm run pictures'
const RENEW = 'look at the pages, then record them with `npm run pictures`'
/** With the browser and the fonts of the pictures. */
const STRICT = { block: 10, share: 0.03 }
/** With others: text has another width, and lines break elsewhere. What is left is the layout of a page. */
const COARSE = { block: 30, share: 0.25 }

test('there is a picture of every scene, and all of them are small', { skip: NOT_RECORDED }, async () => {
  const names = readdirSync(RECORDED).filter((name) => name.endsWith('.webp'))
  assert.deepEqual(names.toSorted(), SCENES.map(({ name }) => `${name}.webp`).toSorted(), RENEW)
  const bytes = names.reduce((sum, name) => sum + statSync(new URL(name, RECORDED)).size, 0)
  assert.ok(bytes < 3_000_000, `${bytes} bytes`)
})

test('every page looks as in its picture: three widths, light and dark, busy, empty and failing', {
  skip: NOT_RECORDED || skipped('chromium') || NOT_BUILT,
}, async (t) => {
  const { machine, easel, sheets } = await openGallery(t)
  const recorded: Machine = JSON.parse(readFileSync(new URL('machine.json', RECORDED), 'utf8'))
  const isSame = JSON.stringify(machine) === JSON.stringify(recorded)
  if (!isSame) {
    const said = `the pictures are of ${textOf(recorded)}, and this machine has ${textOf(machine)}`
    if (!ARE_REQUIRED) {
      t.skip(`${said}: pages would differ for this reason alone`, () => undefined)
      return
    }
    t.comment(`${said}: only the layout of pages is compared`)
  }
  const { block, share } = isSame ? STRICT : COARSE
  const wrong: string[] = []
  for await (const { scene, bytes } of sheets()) {
    const before = readFileSync(new URL(`${scene.name}.webp`, RECORDED))
    const found = await differenceOf(easel, before, bytes, block)
    t.comment(`${scene.name}: ${(100 * found.share).toFixed(1)} %`)
    if (found.share > share) wrong.push(`${scene.name}, ${LOOKS[found.look]}: ${found.share} of it differs`)
  }
  assert.deepEqual(wrong, [], RENEW)
})

test('a difference is found: a lost column, and not a letter', { skip: skipped('chromium') }, async (t) => {
  const { easel } = await openGallery(t)
  const drawn = async (script: string) => {
    const text = await easel.evaluate(`(async () => {
      const canvas = new OffscreenCanvas(790, 600)
      const drawing = canvas.getContext('2d')
      drawing.fillStyle = '#fff'
      drawing.fillRect(0, 0, 790, 600)
      drawing.fillStyle = '#111'
      for (let line = 0; line < 12; line++) drawing.fillRect(20, 20 + 20 * line, 300, 8)
      ${script}
      const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/webp', quality: 0.7 })).arrayBuffer())
      return btoa(String.fromCharCode(...bytes))
    })()`)
    return Buffer.from(text as string, 'base64')
  }
  const whole = await drawn('')
  const letter = await drawn(`drawing.fillRect(100, 270, 6, 6)`)
  const lost = await drawn(`drawing.fillStyle = '#fff'; drawing.fillRect(200, 0, 160, 300)`)
  assert.equal((await differenceOf(easel, whole, whole, STRICT.block)).share, 0)
  assert.ok((await differenceOf(easel, whole, letter, STRICT.block)).share < STRICT.share)
  const found = await differenceOf(easel, whole, lost, STRICT.block)
  assert.ok(found.share > STRICT.share, String(found.share))
  assert.equal(found.look, 0)
})

function textOf({ chromium, fonts }: Machine): string {
  return `Chromium ${chromium} with fonts of the widths ${fonts.join(' and ')}`
}

const LOOKS = ['light', 'dark'].flatMap((scheme) =>
  [1_440, 1_024, 390].map((width) => `${scheme} at ${width} px`),
)
