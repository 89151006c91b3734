import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path/posix'
import { type AnyNode, type Expression, parse, type Program, type Super, tokenizer } from 'acorn'
import { test } from 'tap'
import { transformWithOxc } from 'vite'

const DRIVERS = ['npm:kysely', 'npm:better-sqlite3', 'npm:pg', 'npm:@clickhouse/client']
const NO_SERVER_NO_DATABASE = ['!npm:koa', '!npm:@koa/*', '!npm:kysely', '!npm:better-sqlite3', '!npm:pg']

/**
 * The map of src/: each room (a folder, or a file at the top of src/) and what it may import: rooms, files, `node:`
 * modules and `npm:` packages. A room holds everything below its folder that has no row of its own. It may import
 * itself and the rooms inside it, and what its row and the rows of the folders around it name. A rule that names a
 * folder covers the rooms inside it. `type` before a name: only by `import type`; `!`: never.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  shared: ['node:*', 'npm:lru-cache', 'npm:pino', 'npm:prom-client'],
  config: ['shared', 'wire', 'apps', 'classify', 'payment', 'policy', 'node:*', 'npm:yaml'],

  // From bytes to an action. The first seven are pure.
  wire: ['type shared/brand.ts', 'type node:*'],
  fingerprint: ['type shared/brand.ts', 'wire', 'node:crypto'],
  apps: ['shared/fault.ts', 'shared/problem.ts', 'wire'],
  classify: ['shared/brand.ts', 'shared/fault.ts', 'shared/problem.ts', 'wire', 'fingerprint'],
  'classify/campaign': [],
  'classify/known': [],
  'classify/verdict': ['classify/known', 'classify/campaign'],
  'classify/measure': ['classify/known', 'classify/verdict'],
  payment: [],
  policy: [
    ...['shared/brand.ts', 'shared/fault.ts', 'shared/problem.ts', 'shared/did-you-mean.ts'],
    ...['wire', 'classify', 'payment'],
  ],
  'policy/expression.ts': ['npm:@marcbachmann/cel-js'],
  'policy/expression-walk.ts': ['type npm:@marcbachmann/cel-js'],
  terms: ['shared/problem.ts', 'wire', 'classify', 'policy'],
  capture: ['shared', 'wire', 'fingerprint', 'node:*'],
  identity: ['shared', 'wire', 'classify', 'node:*', 'npm:*', ...NO_SERVER_NO_DATABASE],
  'identity/fetch': [],
  'identity/signature': [],
  'identity/keys': ['identity/signature', 'identity/fetch'],
  'identity/cards': ['identity/keys', 'identity/fetch'],
  'identity/verify': ['identity/signature', 'identity/keys', 'identity/fetch', 'identity/cards'],
  'identity/address': ['identity/keys', 'identity/fetch', 'identity/verify'],
  plane: ['shared', 'wire', 'fingerprint', 'apps', 'classify', 'payment', 'policy', 'node:*'],
  'plane/privacy': ['plane'],
  'plane/app': ['plane'],
  'plane/jetstream': ['plane', 'plane/app', 'npm:@nats-io/*'],
  proxy: [
    ...[
      'shared',
      'wire',
      'fingerprint',
      'apps',
      'capture',
      'classify',
      'payment',
      'policy',
      'terms',
      'identity',
      'plane',
    ],
    ...['node:*', 'npm:*', ...NO_SERVER_NO_DATABASE],
  ],
  'proxy/connection': [],
  'proxy/tls': ['proxy/connection'],
  'proxy/http': ['proxy/connection'],
  'proxy/upstream': ['proxy/connection', 'proxy/http'],
  'proxy/request': ['proxy/connection', 'proxy/http', 'proxy/upstream'],
  'proxy/worker': ['proxy/connection', 'proxy/tls', 'proxy/http', 'proxy/upstream', 'proxy/request'],
  inject: ['shared', 'config', 'proxy/tls/certificate-maker.ts', 'node:*'],

  // What is kept.
  store: [
    'shared',
    'wire/host.ts',
    'wire/address-ranges.ts',
    'plane',
    'apps',
    'classify',
    'policy',
    'node:*',
    ...DRIVERS,
  ],
  'store/engine': [],
  'store/catalogue': ['store/engine'],
  'store/traffic': ['store/engine', 'store/catalogue'],
  'store/events': ['store/engine'],
  'store/people': ['store/engine'],
  'store/work': ['store/engine'],
  'store/erasure': ['store/engine'],
  'store/data-map': ['store/engine'],

  // The management plane, from the ground up. Files beside the rooms compose them.
  manage: [
    ...[
      'shared',
      'config',
      'wire',
      'fingerprint',
      'apps',
      'capture',
      'classify',
      'payment',
      'policy',
      'terms',
      'identity',
      'plane',
      'store',
    ],
    ...['node:*', 'npm:*'],
  ],
  'manage/http': [],
  'manage/limits': ['manage/http'],
  'manage/auth': ['manage/http', 'manage/limits'],
  'manage/intake': ['manage/http'],
  'manage/payments': ['manage/http'],
  'manage/jobs': ['manage/http', 'manage/auth'],
  'manage/judging': ['manage/http', 'manage/intake', 'manage/jobs'],
  'manage/privacy': ['manage/http', 'manage/auth', 'manage/intake'],
  'manage/events': [
    ...['manage/http', 'manage/auth', 'manage/intake', 'manage/jobs', 'manage/judging', 'manage/payments'],
  ],
  'manage/export': ['manage/http', 'manage/intake', 'manage/judging', 'manage/events'],
  'manage/publish': ['manage/http'],
  'manage/api': [
    ...['manage/http', 'manage/auth', 'manage/limits', 'manage/intake', 'manage/jobs', 'manage/judging'],
    ...['manage/events', 'manage/export', 'manage/publish', 'manage/payments', 'manage/privacy'],
  ],
  'manage/pages': ['manage/http', 'manage/auth', 'manage/api'],
  'manage/mcp': ['manage/http', 'manage/auth', 'manage/jobs', 'manage/events', 'manage/api'],
  'manage/a2a': ['manage/http', 'manage/auth', 'manage/jobs', 'manage/events', 'manage/api'],

  dashboard: [
    ...['npm:*', 'shared/markdown.ts', 'shared/guide-link.ts', 'shared/csv.ts'],
    ...['wire/address-ranges.ts', 'wire/event-stream.ts', 'wire/head-text.ts'],
    ...['manage/intake/traffic.ts', 'config/source.ts'],
  ],

  // Processes, and the command line in front of them.
  terminal: ['shared', 'config', 'capture', 'policy', 'node:*'],
  runtime: ['*', '!commands', '!dashboard', '!main.ts', '!bin.js'],
  commands: ['*', '!dashboard', '!main.ts', '!bin.js'],
  'main.ts': ['*', '!bin.js'],
  'bin.js': ['main.ts', 'node:module', 'node:url'],
  'build.ts': ['node:*', 'npm:rolldown'],
}

/** A reader sees the flow of a room by opening its folder. */
const FOLDER_FILES_MAX = 25
/** One file for each resource. */
const LONG_FOLDERS = ['manage/api']

/** In these, the same input gives the same output at once: no clock, no chance, no console, no waiting. */
const PURE = ['wire', 'fingerprint', 'apps', 'classify', 'payment', 'policy', 'terms']
/** They change what they are called on. */
const MUTATING = [
  ...['add', 'clear', 'copyWithin', 'delete', 'fill', 'pop', 'push', 'reverse', 'set', 'shift', 'sort'],
  ...['splice', 'unshift'],
]
const IMPURE = ['Date', 'Math.random', 'console', 'process', 'globalThis', 'await']

/** Vite reads its settings so, and gives the addresses of files so. */
const FOR_VITE = ['dashboard/assets.d.ts', 'dashboard/vite.config.ts']

/** Longer than this, a file has more than one subject. */
const FILE_LINES_MAX = 400
/** Generated from the OpenAPI document. */
const LONG_FILES = ['dashboard/api/operations.ts']

/** What is started often, or beside every app: its memory is a promise. */
const WITHOUT_MANAGEMENT = [
  ...[
    'commands/proxy.ts',
    'commands/record/record.ts',
    'commands/check/check.ts',
    'commands/analyze.ts',
    'main.ts',
  ],
  ...['commands/inject.ts', 'runtime/signatures/signature-process.ts', 'proxy/worker/worker-process.ts'],
]
const OF_MANAGEMENT = [
  ...['kysely', 'better-sqlite3', 'pg', 'zod', 'zod-openapi', 'rate-limiter-flexible'],
  ...['@koa/router', '@koa/bodyparser', 'oidc-provider', 'jsonwebtoken', '@simplewebauthn/server'],
]

/** A declaration at the top of a file. */
const TYPE = /^(?:export )?(?:abstract )?(?:interface|type|class) (\w+)/gm

/** What may stand between `import` or `export` and `from`. */
const CLAUSE = /^(?!(?:import|export)$)(?:[\w$]+|[{},*])$/

const TOP_LEVEL = [
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'Dockerfile'],
  ...['README.md', 'LICENSE', 'NOTICE', 'CHANGELOG.md'],
  ...['src', 'config', 'signatures', 'bench', 'test', 'helm'],
]

test('src/ imports along the arrows of the design, and holds to its other bans', async () => {
  const paths = globSync('src/**/*.{ts,tsx,js}').map((path) => path.replaceAll('\\', '/'))
  const read = paths.map(async (path) => [path.replace(/^src\//, ''), await sourceOf(path)] as const)
  const sources = new Map(await Promise.all(read))
  assert.ok(sources.has('main.ts'), 'the walk found no src/main.ts: is this the root of the checkout?')
  assert.deepEqual(problemsIn(sources), [])
})

test('programs without a management plane load neither a database nor the API', async () => {
  for (const entry of WITHOUT_MANAGEMENT) {
    const loaded = [...loadedBy(entry)]
    assert.ok(loaded.length > 5, entry)
    const forbidden = loaded.filter((target) => OF_MANAGEMENT.some((name) => target === `npm:${name}`))
    assert.deepEqual(forbidden, [], entry)
  }
  const plane = loadedBy('manage/management-plane.ts')
  assert.ok(plane.has('npm:zod'))
  // Loaded on the first request.
  for (const name of ['oidc-provider', '@modelcontextprotocol/server', '@a2a-js/sdk'])
    assert.ok(!plane.has(`npm:${name}`), name)
  assert.ok(loadedBy('manage/a2a/agent-card.ts').has('npm:@a2a-js/sdk'))
})

test('no folder of src/ is a heap', async () => {
  const files = globSync('src/**/*.{ts,tsx,js}').map((path) =>
    dirname(path.replaceAll('\\', '/')).slice('src/'.length),
  )
  const counts = Map.groupBy(files, (folder) => folder)
  const heaps = [...counts].filter(
    ([folder, each]) => each.length > FOLDER_FILES_MAX && !LONG_FOLDERS.includes(folder),
  )
  assert.deepEqual(
    heaps.map(([folder, each]) => `src/${folder}: ${each.length} files`),
    [],
  )
})

test('a type name of the management plane has one meaning', async () => {
  const found = globSync('src/manage/**/*.ts').flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(TYPE)].map(([, name]) => ({ name, path })),
  )
  assert.ok(found.length > 100)
  const several = [...Map.groupBy(found, ({ name }) => name)].filter(([, places]) => places.length > 1)
  assert.deepEqual(
    several.map(([name, places]) => `${name}: ${places.map(({ path }) => path).join(', ')}`),
    [],
  )
})

test('nothing stands at the top level but what the design names', {
  skip: !existsSync('.git') && 'this is not a git checkout',
}, async () => {
  const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    encoding: 'utf8',
  })
  const entries = new Set(
    tracked
      .trim()
      .split('\n')
      .map((path) => path.split('/')[0]!),
  )
  assert.deepEqual(
    [...entries].filter((entry) => !entry.startsWith('.') && !TOP_LEVEL.includes(entry)),
    [],
  )
})

const REFUSED: readonly (readonly [title: string, sources: Record<string, string>, problem: RegExp])[] = [
  ['an arrow up', { 'wire/reader.ts': `import { x } from '../proxy/x.ts'` }, /reader\.ts:1: .*proxy/],
  [
    'an arrow up for a type',
    { 'policy/a.ts': `import type { X } from '../proxy/x.ts'` },
    /policy may not import proxy/,
  ],
  [
    'an arrow up by export',
    { 'classify/a.ts': `export { x } from '../policy/x.ts'` },
    /may not import policy/,
  ],
  ['an arrow up by export *', { 'classify/a.ts': `export * from '../policy/x.ts'` }, /may not import policy/],
  ['an arrow up by import()', { 'plane/a.ts': `const x = import('../store/x.ts')` }, /may not import store/],
  ['a side effect', { 'manage/a.ts': `import '../proxy/x.ts'` }, /may not import proxy/],
  ['import() of what cannot be known', { 'manage/a.ts': 'import(`../x.ts`)' }, /no plain string/],
  [
    'a run-time import in wire',
    { 'wire/a.ts': `import { isIP } from 'node:net'` },
    /may not import node:net/,
  ],
  ['an inline type in wire', { 'wire/a.ts': `import { type X } from 'node:net'` }, /may not import node:net/],
  [
    'brand.ts at run time',
    { 'fingerprint/a.ts': `import { x } from '../shared/brand.ts'` },
    /may not import shared/,
  ],
  ['a module of node', { 'fingerprint/a.ts': `import { x } from 'node:fs'` }, /may not import node:fs/],
  ['a package', { 'classify/a.ts': `import { x } from 'lru-cache'` }, /may not import npm:lru-cache/],
  [
    'NATS beside its bus',
    { 'plane/a.ts': `import { x } from '@nats-io/jetstream'` },
    /may not import npm:@nats-io/,
  ],
  [
    'Koa on the hot path',
    { 'proxy/a.ts': `import { x } from '@koa/router'` },
    /may not import npm:@koa\/router/,
  ],
  [
    'another file of a folder than the allowed one',
    { 'inject/a.ts': `import { x } from '../proxy/x.ts'` },
    /inject may not import proxy/,
  ],
  ['a folder that the table lacks', { 'utils/a.ts': '' }, /utils is not in the table/],
  ['the clock', { 'policy/a.ts': 'const now = Date.now()' }, /policy may not use Date/],
  ['chance', { 'policy/a.ts': 'const x = Math.random()' }, /policy may not use Math\.random/],
  ['waiting', { 'classify/a.ts': 'async () => { await x }' }, /classify may not use await/],
  ['process inside a template', { 'wire/a.ts': `const x = \`\${process.pid}\`` }, /wire may not use process/],
  [
    'a cycle',
    { 'wire/a.ts': `import './b.ts'`, 'wire/b.ts': `import './a.ts'` },
    /cycle of files: wire\/a\.ts → wire\/b\.ts → wire\/a\.ts/,
  ],
  ['an import of itself', { 'wire/a.ts': `import './a.ts'` }, /cycle of files: wire\/a\.ts → wire\/a\.ts/],
  ['a variable of a pure file', { 'wire/a.ts': 'let last = 0' }, /a\.ts:1: keeps state in last/],
  [
    'an instance in a pure file',
    { 'policy/a.ts': 'const REQUEST = new PolicyRequest()' },
    /keeps state in REQUEST/,
  ],
  [
    'a write to a table',
    { 'classify/a.ts': 'const T: Readonly<X> = new X()\nfunction f() { T.a[0] = 1 }' },
    /a\.ts:2: keeps state in T/,
  ],
  [
    'a list that grows',
    { 'classify/a.ts': 'const LIST: string[] = []\nclass A { #b() { return LIST.push(1) } }' },
    /a\.ts:2: keeps state in LIST/,
  ],
  [
    'a call for its effect',
    { 'policy/a.ts': 'const MARKS = marksOf()\nconst f = () => { MARKS.note(1) }' },
    /a\.ts:2: keeps state in MARKS/,
  ],
  [
    'the place of a sticky expression',
    { 'wire/a.ts': 'const PAIR = /a/y\nfunction f(x: string) { return PAIR.test(x) }' },
    /keeps state in PAIR/,
  ],
  ['a static field', { 'fingerprint/a.ts': 'class A { static count = 0 }' }, /keeps state in count/],
  ['a default export', { 'wire/a.ts': 'export default 1' }, /default export/],
  ['a default export by name', { 'wire/a.ts': 'const x = 1\nexport { x as default }' }, /default export/],
  ['a barrel', { 'wire/index.ts': '' }, /barrel/],
  ['a long file', { 'wire/a.ts': '\n'.repeat(FILE_LINES_MAX) }, /401 lines/],
]

test('the check refuses', async (t) => {
  for (const [title, sources, problem] of REFUSED) {
    t.test(title, async () => {
      const problems = problemsIn(new Map(Object.entries(sources)))
      assert.equal(problems.length, 1, problems.join('\n'))
      assert.match(problems[0]!, problem)
    })
  }
})

test('the check finds a cycle of rooms where no files import each other', async () => {
  const sources = new Map([
    ['proxy/a.ts', `import { x } from '../identity/x.ts'`],
    ['identity/x.ts', `import type { Y } from '../proxy/y.ts'`],
    ['proxy/y.ts', ''],
  ])
  assert.deepEqual(problemsIn(sources), [
    'identity/x.ts:1: identity may not import proxy',
    'a cycle of rooms: proxy → identity → proxy',
  ])
})

test('the check lets pass', async () => {
  const sources = new Map(
    Object.entries({
      'wire/a.ts': `import type { Brand } from '../shared/brand.ts'\nimport type { IncomingMessage } from 'node:http'`,
      'wire/b.ts': `import { a } from './a.ts'\n// Date, process, await import('../proxy/x.ts')\nconst x = 'Date' + a.process + import.meta.url`,
      'shared/brand.ts': `export type Brand = string`,
      'inject/a.ts': `import { x } from '../proxy/tls/certificate-maker.ts'`,
      'plane/jetstream/bus.ts': `import { x } from '@nats-io/jetstream'\nexport { y } from '../../wire/a.ts'`,
      'classify/a.ts': `const T: ReadonlySet<string> = new Set(['a'])\nexport function f() { const own = new Set(T); own.add('b'); let n = 0; n++; return own }`,
      'wire/c.ts': `const ALL = /a/g\nexport const f = (x: string) => x.replace(ALL, 'b')\nexport class A { static readonly NONE = 0; n = 0; more(): void { this.n++ } }`,
      'policy/a.ts': `const re = /import 'x' from "Date"/.test(y); export { re }; const of = 'from'`,
      'main.ts': `import type from './proxy/a.ts'\nawait import('./manage/a.ts')`,
    }),
  )
  assert.deepEqual(problemsIn(sources), [])
})

/** What a tokenizer reads: of a component, what is made of it. */
async function sourceOf(path: string): Promise<string> {
  const source = readFileSync(path, 'utf8')
  if (!path.endsWith('.tsx')) return source
  return (await transformWithOxc(source, path, { jsx: { importSource: 'preact' } })).code
}

/** Every broken rule in these sources, given by their paths in src/. */
function problemsIn(sources: ReadonlyMap<string, string>): string[] {
  const imports = new Map<string, readonly Import[]>()
  const problems: string[] = []
  for (const [file, source] of sources) {
    const words = wordsIn(source)
    const found = importsIn(file, words)
    imports.set(file, found)
    problems.push(
      ...arrowProblems(file, found),
      ...purityProblems(file, words),
      ...stateProblems(file, source),
      ...shapeProblems(file, source, words),
    )
  }
  return [
    ...problems,
    ...new Set([...cycleProblems(imports, 'files'), ...cycleProblems(roomsOf(imports), 'rooms')]),
  ]
}

/** The same imports between rooms. A room inside another one forms no circle with it: the outer one composes it. */
function roomsOf(imports: ReadonlyMap<string, readonly Import[]>): Map<string, Import[]> {
  const rooms = new Map<string, Import[]>()
  for (const [file, found] of imports) {
    const room = zoneOf(file)
    const others = found.flatMap((each) => {
      if (each.target === null) return []
      const target = zoneOf(each.target)
      return isWithin(target, room) || isWithin(room, target) ? [] : [{ ...each, target }]
    })
    rooms.set(room, [...(rooms.get(room) ?? []), ...others])
  }
  return rooms
}

/** A token. TypeScript's are JavaScript's, so that no TypeScript parser is needed to find the imports. */
interface Word {
  readonly text: string
  readonly isString: boolean
  readonly line: number
}

function wordsIn(source: string): Word[] {
  const tokens = tokenizer(source, { ecmaVersion: 'latest', sourceType: 'module', locations: true })
  return [...tokens].map(({ type, start, end, loc }) => ({
    text: type.label === 'string' ? source.slice(start + 1, end - 1) : source.slice(start, end),
    isString: type.label === 'string' || type.label === 'template',
    line: loc!.start.line,
  }))
}

/** At its start, directly and through others. */
function loadedBy(entry: string): ReadonlySet<string> {
  const loaded = new Set([entry])
  for (const file of loaded) {
    if (file.includes(':')) continue
    for (const { target, isType, isLate } of importsIn(file, wordsIn(readFileSync(`src/${file}`, 'utf8'))))
      if (target !== null && !isType && !isLate) loaded.add(target)
  }
  return loaded
}

interface Import {
  /** A path in src/, or `node:…`, or `npm:…`; null where only a run can tell. */
  readonly target: string | null
  readonly isType: boolean
  /** import(): not before it is run. */
  readonly isLate: boolean
  readonly line: number
}

function importsIn(file: string, words: readonly Word[]): Import[] {
  const found: Import[] = []
  for (const [index, { text, line }] of words.entries()) {
    if (!isCode(words, index) || (text !== 'import' && text !== 'export')) continue
    const specifier = specifierAfter(words, index)
    if (specifier === undefined) continue
    // `import type from 'x'` is the default import of a thing called type.
    const isType = words[index + 1]?.text === 'type' && !words[index + 3]?.isString
    const isLate = words[index + 1]?.text === '('
    found.push({ target: specifier && targetOf(file, specifier.text), isType, isLate, line })
  }
  return found
}

/** Undefined: nothing is imported (`import.meta`, `export const …`). Null: an import() of no plain string. */
function specifierAfter(words: readonly Word[], index: number): Word | null | undefined {
  const next = words[index + 1]
  if (next?.isString) return next
  if (next?.text === '(') return words[index + 2]?.isString ? words[index + 2] : null
  for (let at = index + 1; at < words.length && CLAUSE.test(words[at]!.text); at++) {
    if (words[at]!.text === 'from' && words[at + 1]?.isString) return words[at + 1]
  }
  return undefined
}

function targetOf(file: string, specifier: string): string {
  if (specifier.startsWith('.')) return join(dirname(file), specifier)
  return specifier.startsWith('node:') ? specifier : `npm:${specifier}`
}

function arrowProblems(file: string, imports: readonly Import[]): string[] {
  const zone = zoneOf(file)
  if (MAY_IMPORT[zone] === undefined) return [`${file}: ${zone} is not in the table of allowed imports`]
  const rules = rowsFor(file)
  return imports.flatMap(({ target, isType, line }) => {
    if (target === null) return [`${file}:${line}: import() of no plain string cannot be checked`]
    const to = zoneOf(target)
    if (isWithin(target, zone) || isAllowed(rules, target, isType)) return []
    return [`${file}:${line}: ${zone} may not import ${to}${isType ? '' : ' at run time'}`]
  })
}

function isAllowed(rules: readonly string[], target: string, isType: boolean): boolean {
  const matches = (pattern: string): boolean =>
    pattern.endsWith('*') ? target.startsWith(pattern.slice(0, -1)) : isWithin(target, pattern)
  if (rules.some((rule) => rule.startsWith('!') && matches(rule.slice(1)))) return false
  return rules.some((rule) => matches(rule) || (isType && rule.startsWith('type ') && matches(rule.slice(5))))
}

/** The rows of a file: its own, and those of each folder around it. */
function rowsFor(file: string): string[] {
  return [file, ...foldersOf(file)].flatMap((place) => MAY_IMPORT[place] ?? [])
}

/** The room of a file: the innermost folder with a row. Packages and node's modules are rooms of their own. */
function zoneOf(path: string): string {
  if (path.includes(':')) return path
  const folders = foldersOf(path)
  return folders.find((folder) => MAY_IMPORT[folder] !== undefined) ?? folders.at(-1) ?? path
}

/** Innermost first: `a/b/c.ts` is in `a/b` and `a`. */
function foldersOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1)
  return parts.map((_, index) => parts.slice(0, parts.length - index).join('/'))
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

function purityProblems(file: string, words: readonly Word[]): string[] {
  const zone = zoneOf(file)
  if (!PURE.some((pure) => isWithin(file, pure))) return []
  return words.flatMap(({ text, line }, index) => {
    const member = `${text}.${words[index + 2]?.text}`
    const used = IMPURE.find((name) => name === text || name === member)
    return used === undefined || !isCode(words, index) ? [] : [`${file}:${line}: ${zone} may not use ${used}`]
  })
}

/**
 * State that a pure file keeps between two calls: a variable of the module, or an object that a constant of the
 * module holds and that a function changes. An object made with `new` must be declared as one that cannot change.
 */
function stateProblems(file: string, source: string): string[] {
  if (!PURE.some((pure) => isWithin(file, pure)) || !file.endsWith('.ts')) return []
  // Types become blanks, so a node is at the same place in the source.
  const program = parse(stripTypeScriptTypes(source), {
    ecmaVersion: 'latest',
    sourceType: 'module',
    locations: true,
  })
  const held = heldByModule(program)
  const problems: string[] = []
  const refuse = ({ loc }: AnyNode, name: string) =>
    problems.push(`${file}:${loc!.start.line}: keeps state in ${name}`)
  for (const [name, { kind, value, declared }] of held) {
    if (kind !== 'const') refuse(declared, name)
    else if (value?.type === 'NewExpression' && !READ_ONLY.test(source.slice(declared.start, value.start)))
      refuse(declared, name)
  }
  for (const { node, isInFunction } of nodesIn(program, false)) {
    if (
      node.type === 'PropertyDefinition' &&
      node.static &&
      !/^static readonly/.test(source.slice(node.start))
    )
      refuse(node, source.slice(node.key.start, node.key.end))
    const changed = isInFunction ? changedBy(node, held) : null
    if (changed !== null) refuse(node, changed)
  }
  return problems
}

interface Held {
  readonly kind: string
  readonly value: Expression | null | undefined
  readonly declared: AnyNode
}

function heldByModule(program: Program): ReadonlyMap<string, Held> {
  const held = new Map<string, Held>()
  for (const statement of program.body) {
    const declaration = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
    if (declaration?.type !== 'VariableDeclaration') continue
    for (const { id, init } of declaration.declarations)
      if (id.type === 'Identifier') held.set(id.name, { kind: declaration.kind, value: init, declared: id })
  }
  return held
}

/** Whatever of the module this node of a function changes. */
function changedBy(node: AnyNode, held: ReadonlyMap<string, Held>): string | null {
  const known = (name: string | null) => (name !== null && held.has(name) ? name : null)
  if (node.type === 'AssignmentExpression') return known(rootOf(node.left))
  if (node.type === 'UpdateExpression' || (node.type === 'UnaryExpression' && node.operator === 'delete'))
    return known(rootOf(node.argument))
  if (node.type === 'ExpressionStatement' && node.expression.type === 'CallExpression') {
    const { callee } = node.expression
    return callee.type === 'MemberExpression' ? known(rootOf(callee)) : null
  }
  if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return null
  const { object, property } = node.callee
  if (object.type !== 'Identifier' || property.type !== 'Identifier') return null
  const value = held.get(object.name)?.value
  const hasPlace = value?.type === 'Literal' && /[gy]/.test(value.regex?.flags ?? '')
  const changes = MUTATING.includes(property.name) || (hasPlace && ['exec', 'test'].includes(property.name))
  return changes ? known(object.name) : null
}

/** The name at the left of a chain of members. */
function rootOf(node: AnyNode | Super): string | null {
  if (node.type === 'MemberExpression') return rootOf(node.object)
  return node.type === 'Identifier' ? node.name : null
}

interface Visited {
  readonly node: AnyNode
  readonly isInFunction: boolean
}

function* nodesIn(value: unknown, isInFunction: boolean): Generator<Visited> {
  if (Array.isArray(value)) for (const each of value) yield* nodesIn(each, isInFunction)
  if (!isNode(value)) return
  yield { node: value, isInFunction }
  const isInside = isInFunction || /Function|PropertyDefinition/.test(value.type)
  for (const child of Object.values(value)) yield* nodesIn(child, isInside)
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

const READ_ONLY = /^\w+\s*:\s*(?:readonly\b|Readonly)/

function shapeProblems(file: string, source: string, words: readonly Word[]): string[] {
  const problems: string[] = []
  const isDefault = (index: number): boolean => {
    return words[index]!.text === 'default' && ['export', 'as'].includes(words[index - 1]?.text ?? '')
  }
  if ([...words.keys()].some(isDefault) && !FOR_VITE.includes(file))
    problems.push(`${file}: a default export`)
  if (/(^|\/)index\.[jt]s$/.test(file)) problems.push(`${file}: a barrel`)
  const lines = source.split('\n').length
  if (lines > FILE_LINES_MAX && !LONG_FILES.includes(file)) problems.push(`${file}: ${lines} lines`)
  return problems
}

/** Files, or rooms, that import each other, however far around, by types or at run time. */
function cycleProblems(imports: ReadonlyMap<string, readonly Import[]>, what: 'files' | 'rooms'): string[] {
  const problems: string[] = []
  const done = new Set<string>()
  const visit = (file: string, trail: readonly string[]): void => {
    const start = trail.indexOf(file)
    if (start !== -1) problems.push(`a cycle of ${what}: ${[...trail.slice(start), file].join(' → ')}`)
    if (start !== -1 || done.has(file)) return
    for (const { target } of imports.get(file) ?? []) if (target !== null) visit(target, [...trail, file])
    done.add(file)
  }
  for (const file of imports.keys()) visit(file, [])
  return problems
}

/** Not inside a string, and not the name of a member: `record.process` is no `process`. */
function isCode(words: readonly Word[], index: number): boolean {
  return !words[index]!.isString && words[index - 1]?.text !== '.' && words[index - 1]?.text !== '?.'
}
