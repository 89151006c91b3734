import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { readdirSync, readFileSync } from 'node:fs'
import { parseConfig, type ParsedConfig } from '../../src/config/config.ts'
import { ConfigFault, type Problem, readSource } from '../../src/config/source.ts'
import { Fault } from '../../src/shared/fault.ts'

/**
 * Any text gives settings, or one ConfigFault that names places which there are. What was read means the same when it is
 * written as JSON, and no secret comes out.
 */
export function config(bytes: Buffer): void {
  const text = textOf(bytes)
  const parsed = parse(text)
  const value = valueIn(text)
  if (value === undefined) return
  const again = parse(JSON.stringify(value))
  if (parsed instanceof ConfigFault || again instanceof ConfigFault) {
    assert.ok(parsed instanceof ConfigFault && again instanceof ConfigFault, 'JSON means something else')
    assert.deepEqual(whats(again), whats(parsed))
    return
  }
  assert.deepEqual([again.hash, again.warnings.length], [parsed.hash, parsed.warnings.length])
  assert.ok(!JSON.stringify([parsed.config, parsed.effective]).includes(SECRET), 'a secret came out')
}

function parse(text: string): ParsedConfig | ConfigFault {
  try {
    return parseConfig({ flags: {}, env: {}, file: { name: NAME, text }, readSecret, workersDefault: 1 })
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error
    placesIn(error, text, NAME)
    return error
  }
}

/** Every problem says where it is, which is in the text, and what it is, in some words. */
export function placesIn({ problems, message }: ConfigFault, text: string, name: string): void {
  assert.ok(problems.length > 0 && message.length <= MESSAGE_LENGTH_MAX, `${message.length} characters`)
  const lines = text.split(LINE_END)
  for (const { where, what } of problems) {
    assert.notEqual(what, '')
    if (where === name || where === NOWHERE) continue
    const [, line, column] = PLACE.exec(where) ?? assert.fail(where)
    const said = lines[Number(line) - 1]
    assert.ok(where.startsWith(`${name}:`) && said !== undefined, where)
    assert.ok(Number(column) >= 1 && Number(column) <= said.length + 1, where)
  }
}

/** What a text says, where that can be written as JSON; `undefined`: it says nothing. */
export function valueIn(text: string): unknown {
  let value: unknown
  try {
    value = readSource(text, NAME).value
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error
    placesIn(error, text, NAME)
    return undefined
  }
  const isWhole = (each: unknown): boolean =>
    typeof each === 'object' && each !== null
      ? Object.entries(each).every(([name, member]) => name.isWellFormed() && isWhole(member))
      : typeof each === 'string'
        ? each.isWellFormed()
        : typeof each !== 'number' || (Number.isFinite(each) && !Object.is(each, -0))
  return isWhole(value) ? value : undefined
}

/** Files that are not UTF-8 are refused before; here they are another text. */
export function textOf(bytes: Buffer): string {
  return bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1')
}

/** Without places, which are others in another text; a fault of the YAML itself has no counterpart. */
function whats({ problems }: ConfigFault): string[] {
  return problems.map(({ what }: Problem) => what).toSorted()
}

function readSecret(file: string): string {
  if (file.includes('no')) throw new Fault('UNREADABLE', 'cannot be read')
  return `${SECRET}\n`
}

export function configSeeds(): Buffer[] {
  return [...filesIn('../config/good/'), ...filesIn('../config/bad/'), ...filesIn('../../config/')].filter(
    ({ length }) => length <= SEED_BYTES_MAX,
  )
}

export function filesIn(folder: string): Buffer[] {
  const url = new URL(folder, import.meta.url)
  const names = readdirSync(url).filter((name) => name.endsWith('.yaml'))
  return names.toSorted().map((name) => readFileSync(new URL(name, url)))
}

const NAME = 'gatehouse.yaml'
const NOWHERE = 'settings'
const SECRET = 'a secret that must not be shown, of more than 32 characters'
const PLACE = /:(\d+):(\d+)$/
const LINE_END = /\n/
/** A hundred problems, which quote no more than a piece of what is wrong. */
const MESSAGE_LENGTH_MAX = 1_000_000
/** Short ones are changed in more places. */
const SEED_BYTES_MAX = 6000
