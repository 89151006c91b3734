import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'
import { parseAst } from 'rolldown/parseAst'
import { test } from 'tap'

/** Its tests run a rule that each caller passes in, and each rule asserts. */
const RULES_ARE_PASSED_IN = ['test/contract/parts.ts']

test('every test body reaches an assertion', async () => {
  const paths = globSync(['test/**/*.ts', 'bench/**/*.ts'])
  const sources = new Map(paths.map((path) => [path, readFileSync(path, 'utf8')]))
  for (const path of RULES_ARE_PASSED_IN) assert.ok(sources.has(path), path)
  const found = testsWithoutAssertion(sources)
  assert.deepEqual(
    found.filter((place) => !RULES_ARE_PASSED_IN.some((path) => place.startsWith(path))),
    [],
  )
})

test('a test body without an assertion is found', async () => {
  const helpers = `
    export const checked = (value) => deeper(value)
    function deeper(value) { assert.ok(value) }
    export class Peer { async hears(text) { if (!text) assert.fail('silent') } }
    export const idle = async () => undefined`
  const cases = `
    import { checked, idle, Peer } from './helpers.ts'
    test('direct', async () => assert.equal(1, 1))
    test('by a helper', { skip: false }, async () => checked(1))
    test('by a method', async () => { await peer.hears('x') })
    test('by a subtest', async (t) => { t.test('inner', async () => t.ok(1)) })
    test('by a property', async () => fc.assert(rule))
    test('nothing', async () => { await idle() })
    test('made', { skip: false }, async () => new Peer())
    test('skipped', { skip: 'not here' })`
  const sources = new Map([
    ['test/helpers.ts', helpers],
    ['test/cases.test.ts', cases],
  ])
  assert.deepEqual(testsWithoutAssertion(sources), [
    "test/cases.test.ts: 'nothing'",
    "test/cases.test.ts: 'made'",
  ])
})

test('a fixed wait of a second or more says why no condition can end it', async () => {
  const unexplained = globSync('test/**/*.test.ts').flatMap((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((line) => (isLongWait(line) && !line.includes(' // ') ? `${path}: ${line.trim()}` : [])),
  )
  assert.deepEqual(unexplained, [])
  const long = ['1_000', '1500', '20_000'].flatMap((time) => [
    `wait(${time})`,
    `setTimeout(resolve, ${time})`,
  ])
  assert.deepEqual(
    [...long, 'wait(999)', 'wait(pauseMs)'].filter((line) => isLongWait(line)),
    long,
  )
})

test('every path that test/README.md names exists', async () => {
  const paths = [...readFileSync('test/README.md', 'utf8').matchAll(/`(test\/[^` *]+|\.ci\/run)`/g)]
  assert.ok(paths.length > 50)
  for (const [, path] of paths) assert.ok(existsSync(path!), path)
})

function isLongWait(line: string): boolean {
  return /\b(?:wait|waitForTimeout|setTimeout\(resolve, ?|setTimeout\(done, ?)\(?[1-9]\d*(?:_\d{3}|\d{3})\)/.test(
    line,
  )
}

/**
 * The tests whose body does not call an assertion, by itself or through functions of its file and of what that
 * imports. Functions are found by name, so one that shares the name of another that asserts is taken for it.
 */
function testsWithoutAssertion(sources: ReadonlyMap<string, string>): string[] {
  const modules = new Map([...sources].map(([path, source]) => [path, readModule(path, source)]))
  return [...modules].flatMap(([path, { tests }]) => {
    if (tests.length === 0) return []
    const asserting = assertingNames(importedBy(path, modules))
    return tests
      .filter(({ calls }) => !calls.some((name) => isAssertion(name) || asserting.has(name)))
      .map(({ title }) => `${path}: ${title}`)
  })
}

interface Module {
  readonly imports: readonly string[]
  /** Each function and method, by its name, with the names that it calls or passes on. */
  readonly functions: readonly { readonly name: string; readonly calls: readonly string[] }[]
  readonly tests: readonly { readonly title: string; readonly calls: readonly string[] }[]
}

function readModule(path: string, source: string): Module {
  const imports: string[] = []
  const functions: { name: string; calls: string[] }[] = []
  const tests: { title: string; calls: string[] }[] = []
  const add = (name: string, node: unknown) => functions.push({ name, calls: callsIn(node) })
  walk(parseAst(source, { lang: 'ts' }), (node) => {
    if (node['source']?.value?.startsWith('.')) imports.push(join(dirname(path), node['source'].value))
    if (node.type === 'FunctionDeclaration') add(node['id'].name, node['body'])
    if (node.type === 'VariableDeclarator' && node['init']) add(node['id'].name ?? '', node['init'])
    if (node.type === 'Property' || node.type === 'MethodDefinition')
      add(`.${node['key'].name ?? ''}`, node['value'])
    if (node.type !== 'CallExpression' || !/^(?:|.*\.)test$/.test(nameOf(node['callee']))) return
    const [title, body] = [node['arguments'][0], node['arguments'].at(-1)]
    if (/Function/.test(body?.type))
      tests.push({ title: source.slice(title.start, title.end), calls: callsIn(body) })
  })
  return { imports, functions, tests }
}

/** The names of functions that are called, or given to another that may call them; methods without their object. */
function callsIn(node: unknown): string[] {
  const names: string[] = []
  walk(node, (each) => {
    if (each.type !== 'CallExpression' && each.type !== 'NewExpression') return
    const name = nameOf(each['callee'])
    names.push(name, name.replace(/^.*(?=\.)/, ''))
    for (const argument of each['arguments']) names.push(nameOf(argument))
  })
  return names
}

function isAssertion(name: string): boolean {
  return /^(?:assert\b|fc\.assert$|t\.(?:pass|fail|ok|equal|same|match|has|throws|rejects)$)/.test(name)
}

/** The functions that assert, or call one that does. */
function assertingNames(modules: readonly Module[]): Set<string> {
  const asserting = new Set<string>()
  const rest = new Set(modules.flatMap(({ functions }) => functions))
  for (let before = -1; before !== asserting.size; ) {
    before = asserting.size
    for (const each of rest)
      if (each.calls.some((name) => isAssertion(name) || asserting.has(name))) {
        asserting.add(each.name)
        rest.delete(each)
      }
  }
  asserting.delete('')
  return asserting
}

function importedBy(path: string, modules: ReadonlyMap<string, Module>): Module[] {
  const paths = new Set([path])
  for (const each of paths) for (const next of modules.get(each)?.imports ?? []) paths.add(next)
  return [...paths].flatMap((each) => modules.get(each) ?? [])
}

// biome-ignore lint/suspicious/noExplicitAny: a node of any kind of syntax
type Node = { readonly type: string } & Record<string, any>

function walk(node: unknown, visit: (node: Node) => void): void {
  if (node === null || typeof node !== 'object') return
  if ('type' in node && typeof node.type === 'string') visit(node as Node)
  for (const each of Object.values(node)) walk(each, visit)
}

/** `a` and `a.b`; of a longer path the end: `.c`. */
function nameOf(node: Node): string {
  if (node.type === 'Identifier') return node['name']
  if (node.type !== 'MemberExpression') return ''
  const object = node['object'].type === 'Identifier' ? node['object'].name : ''
  return `${object}.${node['property'].name ?? ''}`
}
