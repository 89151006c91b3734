import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import type { ConfigRole } from '../../src/config/checks.ts'
import { parseConfig } from '../../src/config/config.ts'

interface Service {
  readonly image: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly volumes?: readonly string[]
  readonly depends_on?: readonly string[] | Readonly<Record<string, unknown>>
  readonly ports?: readonly string[]
}

const file = parse(readFileSync('config/compose.yaml', 'utf8'), { merge: true })
const services = Object.entries(file.services as Record<string, Service>)

test('the fleet on a laptop: the program takes what each of its parts is told', async () => {
  const ours = services.filter(([, { image }]) => image === 'gatehouse')
  assert.deepEqual(
    ours.map(([name]) => name),
    ['manage-1', 'manage-2', 'proxy-1', 'proxy-2'],
  )
  for (const [, { command, environment }] of ours)
    parseConfig({ flags: {}, env: environment!, file: null, role: command![0] as ConfigRole })
})

test('what it mounts is there, names what there is, and takes no port twice', async () => {
  const named = services.map(([name]) => name)
  const ports = services.flatMap(([, { ports: some = [] }]) => some.map((port) => port.split(':')[0]))
  assert.equal(new Set(ports).size, ports.length)
  for (const [, { volumes = [], depends_on: needed = [] }] of services) {
    for (const volume of volumes) {
      const [from] = volume.split(':')
      if (from!.startsWith('.')) assert.ok(existsSync(join('config', from!)), volume)
      else assert.ok(Object.hasOwn(file.volumes, from!), volume)
    }
    for (const name of Array.isArray(needed) ? needed : Object.keys(needed))
      assert.ok(named.includes(name), name)
  }
  const { scrape_configs: scraped } = parse(readFileSync('config/prometheus.yml', 'utf8'))
  for (const target of scraped[0].static_configs[0].targets)
    assert.ok(named.includes(target.split(':')[0]), target)
})

const hasCompose = spawnSync('docker', ['compose', 'version']).status === 0
const skip =
  !hasCompose && 'docker compose is not installed, and Debian has no package of it: docs.docker.com/compose'
test('docker compose reads it', { skip }, async () => {
  const { status, stderr } = spawnSync(
    'docker',
    ['compose', '-f', 'config/compose.yaml', 'config', '--quiet'],
    {
      encoding: 'utf8',
    },
  )
  assert.equal(status, 0, stderr)
})
