import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import { CATEGORIES, VERDICTS } from '../../src/dashboard/pages/live/names.ts'

type Rgb = readonly [red: number, green: number, blue: number]

const FOLDER = 'src/dashboard/style/'
const palette = coloursIn('palette.css')
const THEMES = [
  ['light', 0],
  ['dark', 1],
] as const
/** Colours of plots that stand for something, by what they are compared in. */
const VERDICT_COLOURS = VERDICTS.map(({ colour }) => colour)
const CATEGORY_COLOURS = CATEGORIES.map(({ colour }) => colour)
const MARKS = [...VERDICT_COLOURS, ...CATEGORY_COLOURS, 'requests', 'blocked', 'previous']

test('colours are in one file, and each name that programs use is there', async () => {
  assert.doesNotMatch(
    readFileSync(`${FOLDER}style.css`, 'utf8'),
    /#[0-9a-f]{3,8}\b|light-dark\(|rgb\(|hsl\(/i,
  )
  const used = globSync('src/dashboard/**/*.{ts,tsx}').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/colour: '([\w-]+)'|painted\('([\w-]+)'\)/g)].map(
      ([, name, painted]) => name ?? painted!,
    ),
  )
  assert.ok(used.length > 10)
  assert.deepEqual(
    used.filter((name) => !palette.has(name)),
    [],
  )
})

test('where more contrast is asked for, all text has 7 to 1, and lines have 3 to 1', async () => {
  const strong = coloursIn('contrast.css')
  for (const [theme, at] of THEMES)
    for (const back of ['page', 'card'])
      for (const [name, least] of [
        ['text', 7],
        ['soft-text', 7],
        ['edge', 7],
        ['line', 3],
      ] as const) {
        const ratio = contrast(colour(name, at, strong), colour(back, at, strong))
        assert.ok(ratio >= least, `${theme}: ${name} on ${back} has ${ratio.toFixed(2)} to 1`)
      }
})

test('a colour of plots means one thing', async () => {
  for (const [theme, at] of THEMES)
    for (const [one, other] of pairs(MARKS)) {
      const away = distance(labOf(colour(one, at)), labOf(colour(other, at)))
      assert.ok(away > 0.08, `${theme}: ${one} and ${other} are ${away.toFixed(3)} apart`)
    }
})

test('verdicts, and categories, are told apart with any colour vision', async () => {
  for (const [theme, at] of THEMES)
    for (const group of [[...VERDICT_COLOURS, 'blocked'], CATEGORY_COLOURS, ['requests', 'blocked']])
      for (const [vision, matrix] of Object.entries(VISIONS))
        for (const [one, other] of pairs(group)) {
          const [a, b] = [one, other].map((name) => labOf(seenWith(matrix, colour(name, at))))
          const away = distance(a!, b!)
          assert.ok(away > 0.12, `${theme}, ${vision}: ${one} and ${other} are ${away.toFixed(3)} apart`)
        }
})

test('marks of plots stand out from the card, and text from what it stands on', async () => {
  for (const [theme, at] of THEMES) {
    for (const name of MARKS) {
      const ratio = contrast(colour(name, at), colour('card', at))
      assert.ok(ratio >= 3, `${theme}: ${name} has ${ratio.toFixed(2)} to 1`)
    }
    for (const name of ['text', 'soft-text', 'link', 'good', 'warn', 'bad', 'key', 'quoted'])
      for (const below of ['page', 'card']) {
        const ratio = contrast(colour(name, at), colour(below, at))
        assert.ok(ratio >= 4.5, `${theme}: ${name} on ${below} has ${ratio.toFixed(2)} to 1`)
      }
  }
})

/** By name: as in the light and in the dark. */
function coloursIn(file: string): ReadonlyMap<string, readonly string[]> {
  const found = readFileSync(`${FOLDER}${file}`, 'utf8').matchAll(/--([\w-]+): ([^;]+);/g)
  return new Map([...found].map(([, name, value]) => [name!, value!.match(/#[0-9a-f]{6}/g) ?? []]))
}

/** In linear light, from 0 to 1. */
function colour(name: string, theme: 0 | 1, colours = palette): Rgb {
  const values = colours.get(name) ?? assert.fail(`no colour ${name}`)
  const text = values[theme] ?? values[0] ?? assert.fail(`${name} is not #rrggbb`)
  const [red, green, blue] = [1, 3, 5].map((from) => {
    const value = Number.parseInt(text.slice(from, from + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return [red!, green!, blue!]
}

/** Oklab (Ottosson 2020): equal distances look about equal. */
function labOf([red, green, blue]: Rgb): Rgb {
  const l = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
  const m = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
  const s = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ]
}

function distance(one: Rgb, other: Rgb): number {
  return Math.hypot(...one.map((value, at) => value - other[at]!))
}

function seenWith(matrix: readonly Rgb[], rgb: Rgb): Rgb {
  const [red, green, blue] = matrix.map((row) =>
    Math.min(1, Math.max(0, row[0] * rgb[0] + row[1] * rgb[1] + row[2] * rgb[2])),
  )
  return [red!, green!, blue!]
}

/** WCAG 2.2. */
function contrast(one: Rgb, other: Rgb): number {
  const [light, dark] = [one, other]
    .map(([red, green, blue]) => 0.2126 * red + 0.7152 * green + 0.0722 * blue)
    .sort((a, b) => b - a)
  return (light! + 0.05) / (dark! + 0.05)
}

function pairs(names: readonly string[]): [string, string][] {
  return names.flatMap((one, at) => names.slice(at + 1).map((other): [string, string] => [one, other]))
}

/** Machado, Oliveira and Fernandes 2009, severity 1. */
const VISIONS: Readonly<Record<string, readonly Rgb[]>> = {
  usual: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
}
