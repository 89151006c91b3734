import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'tap'
import { endWith, plainEnvironment } from './e2e/programs.ts'

const SHIPPED =
  /^package\/(?:dist\/|signatures\/|config\/|package\.json$|LICENSE$|NOTICE$|README\.md$|CHANGELOG\.md$)/

/** Where it has been packed before. */
const PACKAGE = process.env['E2E_PACKAGE']
const KEY = 'a key of an administrator, for this test alone'

test('the package, packed and installed in an empty folder', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-package-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const tarball = PACKAGE ?? packed(folder)
  const app = join(folder, 'app')
  mkdirSync(app)
  writeFileSync(join(app, 'package.json'), '{ "private": true }')
  run('npm', ['install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', tarball], app)

  t.test('holds the program in JavaScript and the licences, and nothing that it does not need', async () => {
    const files = run('tar', ['-tf', tarball], '.').trim().split('\n')
    for (const file of [
      'package.json',
      'dist/bin.js',
      'config/guide/policy.md',
      'dist/LICENSES',
      'dist/dashboard/index.html',
      'dist/dashboard/LICENSES.md',
      'LICENSE',
      'NOTICE',
      'CHANGELOG.md',
    ]) {
      assert.ok(files.includes(`package/${file}`), `${file} is missing`)
    }
    assert.deepEqual(
      files.filter((file) => !SHIPPED.test(file) || file.endsWith('.ts')),
      [],
    )
  })

  t.test('has the licence of each package whose code is in the program', async () => {
    const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
    const said = run('tar', ['-xOf', tarball, 'package/dist/LICENSES'], '.').split(`\n${'-'.repeat(80)}\n\n`)
    const names = said.map((text) => text.slice(0, text.indexOf(' ')))
    for (const name of Object.keys(dependencies))
      assert.equal(names.includes(name), name !== 'better-sqlite3', name) // which stays as it is
    for (const text of said) assert.match(text, /^\S+ \d\S+ \(.+\)\n\n\S/)
    const inDashboard = run('tar', ['-xOf', tarball, 'package/dist/dashboard/LICENSES.md'], '.')
    for (const name of ['@codemirror/view', 'preact', 'uplot', 'yaml'])
      assert.ok(inDashboard.includes(`\n## ${name} - `), name)
  })

  t.test('contains no trace of where, when and by which user it was packed', async () => {
    const entries = run('env', ['TZ=UTC', 'tar', '-tvf', tarball], '.').trim().split('\n')
    for (const entry of entries)
      assert.match(entry, /^-rw[x-]r-[x-]r-[x-] 0\/0 +\d+ 1985-10-26 08:15 package\//)
    const unpacked = join(folder, 'unpacked')
    mkdirSync(unpacked)
    run('tar', ['-xf', tarball, '-C', unpacked], '.')
    const { stdout } = spawnSync('grep', ['-rlF', process.cwd(), unpacked], { encoding: 'utf8' })
    assert.equal(stdout, '')
  })

  t.test('runs', async () => {
    assert.match(run('npx', ['gatehouse', '--version'], app), /^gatehouse \d+\.\d+\.\d+\n$/)
    assert.match(run('npx', ['gatehouse', '--help'], app), /^Usage: gatehouse COMMAND/)
    assert.match(run('npx', ['gatehouse', 'completion', 'bash'], app), /^_gatehouse\(\) \{/)
  })

  t.test('knows what the files of signatures say', async () => {
    const inPackage = run('npx', ['gatehouse', 'signatures', 'export', '--format', 'json'], app)
    assert.equal(
      inPackage,
      run(process.execPath, ['src/bin.js', 'signatures', 'export', '--format', 'json'], '.'),
    )
  })

  t.test('serves, with its workers and its other processes, the API and the page about it', async (t) => {
    const places = ['--listen', '127.0.0.1:0', '--manage', '127.0.0.1:0', '--upstream', 'http://127.0.0.1:9']
    const program = join(app, 'node_modules', 'gatehouse', 'dist', 'bin.js')
    const child = spawn(process.execPath, [program, 'up', '--workers', '1', ...places], {
      cwd: app,
      env: plainEnvironment(app, { GATEHOUSE_ADMIN_KEY: KEY }),
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    endWith(t, child)
    const exit = once(child, 'exit')
    let manage = ''
    let isMerged = false // by a process of its own
    for await (const line of createInterface(child.stderr)) {
      const { level, message, ...fields } = JSON.parse(line)
      assert.notEqual(level, 'error', line)
      if (message === 'ready') manage = `http://${fields.manage}`
      isMerged ||= message === 'the catalogue is up to date'
      if (manage !== '' && isMerged) break
    }
    const page = await (await fetch(`${manage}/docs`)).text()
    assert.match(page, /<title>/)
    assert.equal((await fetch(`${manage}/docs/style.css`)).status, 200)
    const headers = { authorization: `Bearer ${KEY}` }
    const agents = (await (await fetch(`${manage}/v1/agents?limit=1`, { headers })).json()) as {
      total: number
    }
    assert.ok(agents.total > 100)
    child.kill('SIGINT')
    assert.deepEqual(await exit, [0, null])
  })
})

function packed(folder: string): string {
  run('npm', ['run', 'package', '--', '--pack-destination', folder], '.')
  return join(folder, readdirSync(folder)[0]!)
}

/** As a person would run it: without what npm and tap put into the environment of a test, our Node among it. */
function run(program: string, argv: readonly string[], folder: string): string {
  const path = process.env['PATH']!.split(':').filter((part) => !part.includes('node_modules'))
  const environment = Object.entries({ ...process.env, PATH: path.join(':') })
  const kept = environment.filter(([name]) => !/^(npm_|NODE_OPTIONS|_?TAP)/.test(name))
  const settings = kept.map(([name, value]) => `${name}=${value}`)
  const { status, stdout, stderr } = spawnSync('env', ['-i', ...settings, program, ...argv], {
    cwd: folder,
    maxBuffer: 64 * 1_048_576,
    encoding: 'utf8',
  })
  assert.equal(status, 0, `${program} ${argv.join(' ')}: ${stdout}${stderr}`)
  return stdout
}
