import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { createContext, Script } from 'node:vm'
import { test } from 'tap'
import { parseAst } from 'vite'
import { attacksOn, textOf } from './pattern-attacks.ts'
import { IS_WHOLE } from './whole.ts'

/** It reads the pages of the manual, which come with the package, and nothing else. */
const PAGES_READER = 'src/shared/markdown.ts'

test('no pattern of ours takes longer for a text that was made for it than for any other', async () => {
  const found = await patterns()
  const slow = found.flatMap(({ pattern, place }) => {
    const told = slowest(pattern, SHORT.get(`/${pattern.source}/`) ?? LENGTH)
    return told === null ? [] : [`${place} ${pattern}: ${told}`]
  })
  assert.deepEqual(slow, [])
  assert.ok(found.length > 350, `${found.length}`)
})

test('what tries patterns finds those that backtrack', async () => {
  const known = [/^(a+)+$/, /[ \t]+$/, /"[^"]*Not[^"]*";/, /a[^.]*\.b/]
  for (const pattern of known) {
    assert.ok(slowest(pattern, LENGTH) !== null, String(pattern))
    await turn()
  }
})

/** What it takes too long for, of the texts that were made for it; `null`: nothing. */
function slowest(pattern: RegExp, length: number): string | null {
  const attacks = attacksOn(pattern)
  const screen = attacks.map((attack) => textOf(attack, SCREEN_LENGTH))
  // Once more: something else may have happened meanwhile.
  const times = timesOf(pattern, screen) ?? timesOf(pattern, screen)
  if (times === null) return `more than ${LIMIT_MS} ms for ${SCREEN_LENGTH} characters`
  const order = [...attacks.keys()].toSorted((one, other) => times[other]! - times[one]!)
  for (const index of order.slice(0, WORST)) {
    const text = textOf(attacks[index]!, length)
    const isSlow = () => (timesOf(pattern, [text])?.[0] ?? LIMIT_MS) >= LIMIT_MS
    if (isSlow() && isSlow())
      return `more than ${LIMIT_MS} ms for ${length} characters like ${JSON.stringify(attacks[index])}`
  }
  return null
}

interface Found {
  readonly pattern: RegExp
  readonly place: string
}

/** Each one that is written down in src/, and those that are put together when a module is loaded. */
async function patterns(): Promise<readonly Found[]> {
  const found: Found[] = []
  const made: string[] = []
  for (const file of globSync('src/**/*.{ts,tsx}').toSorted()) {
    if (file === PAGES_READER) continue
    const lang = file.endsWith('x') ? 'tsx' : 'ts'
    walk(parseAst(readFileSync(file, 'utf8'), { lang }), ({ regex, type, callee }) => {
      if (regex !== undefined) found.push({ pattern: new RegExp(regex.pattern, regex.flags), place: file })
      if ((type === 'NewExpression' || type === 'CallExpression') && callee?.name === 'RegExp')
        made.push(file)
    })
  }
  const put = await putTogether(made)
  for (const file of new Set(made))
    assert.ok(
      put.some(({ place }) => place === file),
      `none is seen of ${file}`,
    )
  return [...found, ...put]
}

interface Node {
  readonly type: string
  readonly regex?: { readonly pattern: string; readonly flags: string }
  readonly callee?: { readonly name?: string }
}

function walk(node: unknown, visit: (node: Node) => void): void {
  if (typeof node !== 'object' || node === null) return
  if ('type' in node) visit(node as Node)
  for (const member of Object.values(node)) walk(member, visit)
}

/** By loading the modules, with a constructor that remembers. */
async function putTogether(files: readonly string[]): Promise<readonly Found[]> {
  const found: Found[] = []
  const real = globalThis.RegExp
  globalThis.RegExp = new Proxy(real, {
    construct(target, given) {
      const pattern = Reflect.construct(target, given) as RegExp
      const stack = new Error('made here').stack ?? ''
      const place = files.find((file) => stack.includes(file))
      if (place !== undefined) found.push({ pattern, place })
      return pattern
    },
  })
  try {
    // Another name of the module: it may have been loaded before.
    for (const file of new Set(files)) await import(new URL(`../../${file}?hostile`, import.meta.url).href)
    const { wrongInFingerprint } = await import('../../src/classify/known/fingerprint-form.ts')
    for (const [type, text] of FINGERPRINTS) wrongInFingerprint(type, text, false)
  } finally {
    globalThis.RegExp = real
  }
  return found
}

/** Of each text, in milliseconds; `null`: it does not come to an end. */
function timesOf(pattern: RegExp, texts: readonly string[]): readonly number[] | null {
  Object.assign(SANDBOX, {
    source: pattern.source,
    flags: pattern.flags,
    texts,
    now: () => performance.now(),
  })
  try {
    return SCRIPT.runInContext(SANDBOX, { timeout: LIMIT_MS * 2 }) as number[]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error
    return null
  }
}

/** Of each kind one, all parts of which are looked at. */
const FINGERPRINTS = [
  ['ja4', 't13d1516h2_8daaf6152771_e5627efa2ab1'],
  ['ja4s', 't130200_1301_a56c5b993250'],
  ['ja4h', 'ge11nn140000_38d01d36b635_000000000000_000000000000'],
  ['ja4x', '7022c563de38_7022c563de38_0147df7a0c11'],
] as const
const SANDBOX = createContext({})
/** As patterns are used: for one, and with `g` for all of them. */
const SCRIPT = new Script(`
  pattern = new RegExp(source, flags)
  texts.map((text) => {
    const startMs = now()
    if (pattern.global) text.replaceAll(pattern, '')
    else pattern.exec(text)
    return now() - startMs
  })
`)
/** More than any header, address or body line has. */
const LENGTH = IS_WHOLE ? 200_000 : 50_000
/** Of all patterns, the worst of these are tried at length. */
const SCREEN_LENGTH = 1_500
const WORST = IS_WHOLE ? 20 : 4
/** Of as many steps as characters, it is less than one; of their square, some thousands. */
const LIMIT_MS = 250
const SERVICE =
  /_SERVICE_HOST$|_SERVICE_PORT(?:_[A-Z0-9_]+)?$|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/
/** Those that are only ever asked of what is short: how long it can be at most, and why. */
const SHORT: ReadonlyMap<string, number> = new Map([
  [String(/sitemap[^.]*\.(?:xml|txt)(?:\.gz)?$/), 100], // SITEMAP_LENGTH_MAX
  [String(/=+$/), 100], // the base64 of a hash
  [String(/\{([^}]+)\}/), 200], // paths of our own operations
  [String(SERVICE), 1_000], // the name of a variable of our own environment
  [String(/\{\?.*$/), 200], // templates of our own resources
])
