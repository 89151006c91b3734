import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/**
 * `npm run package:prove [-- TARBALL]`: packs what is committed twice, in clones that have nothing in common but the packages
 * that are installed here, neither their folder nor its depth, umask, language or time zone: they have to be the same bytes,
 * and those of the TARBALL, if there is one.
 */
function main(given: string | undefined): void {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-package-'))
  try {
    const made = PLACES.map((place) => packed(folder, place))
    const all = given === undefined ? made : [...made, resolve(given)]
    const digests = all.map((file) => createHash('sha256').update(readFileSync(file)).digest('hex'))
    for (const [index, digest] of digests.entries()) process.stdout.write(`${digest}  ${all[index]}\n`)
    const others = all.filter((_, index) => digests[index] !== digests[0])
    for (const other of others) process.stdout.write(`${differing(all[0]!, other).join('\n')}\n`)
    assert.deepEqual(others, [], 'not the same bytes')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Place {
  readonly name: string
  readonly umask: number
  readonly settings: Readonly<Record<string, string>>
}

function packed(folder: string, { name, umask, settings }: Place): string {
  const [clone, out] = [join(folder, name), join(folder, `of ${name.replaceAll('/', ' ')}`)]
  const before = process.umask(umask)
  try {
    mkdirSync(out, { recursive: true })
    execFileSync('git', ['clone', '--quiet', '.', clone])
    symlinkSync(resolve('node_modules'), join(clone, 'node_modules'))
    execFileSync('npm', ['run', '--silent', 'package', '--', '--pack-destination', out], {
      ...{ cwd: clone, env: { ...process.env, ...settings } },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  } finally {
    process.umask(before)
  }
  return join(out, readdirSync(out)[0]!)
}

/** The files that are not the same, with what `tar` says of each. */
function differing(one: string, other: string): readonly string[] {
  const [first, second] = [one, other].map(listed)
  const names = new Set([...first!.keys(), ...second!.keys()])
  return [...names].filter((name) => first!.get(name) !== second!.get(name)).toSorted()
}

function listed(tarball: string): ReadonlyMap<string, string> {
  const lines = execFileSync('tar', ['-tvf', tarball], {
    encoding: 'utf8',
    env: { ...process.env, TZ: 'UTC' },
  })
  const entries = lines.trimEnd().split('\n')
  return new Map(
    entries.map((line) => [line.split(' ').at(-1)!, line + contentOf(tarball, line.split(' ').at(-1)!)]),
  )
}

function contentOf(tarball: string, name: string): string {
  const bytes = execFileSync('tar', ['-xOf', tarball, name], { maxBuffer: 1e9 })
  return createHash('sha256').update(bytes).digest('hex')
}

const PLACES: readonly Place[] = [
  { name: 'one', umask: 0o022, settings: { TZ: 'UTC', LC_ALL: 'C' } },
  { name: 'a/folder/further/down', umask: 0o077, settings: { TZ: 'Asia/Tokyo', LC_ALL: 'C.UTF-8' } },
]

main(process.argv[2])
