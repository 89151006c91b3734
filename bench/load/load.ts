import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CONTENDERS, listening, type Place, startUpstream } from './contenders.ts'
import { LOADS, type Result, usage } from './loads.ts'

/**
 * The proxies on one processor, the load and a small upstream on the other, taking turns: what a request costs each of
 * them. Usage: npm run bench:load [-- ROUNDS [SECONDS]]
 */
const rounds = Number(process.argv[2] ?? 5)
const seconds = Number(process.argv[3] ?? 3)
const folder = mkdtempSync(join(tmpdir(), 'load-'))
const place: Place = { folder, ...certificate(folder), upstreamPort: 18_080, processor: '0' }
const upstream = startUpstream(folder, place.upstreamPort, '1')
const entrants = CONTENDERS.filter(({ name }) => isHere(name)).map((contender, index) => {
  const port = 18_443 + index
  return { name: contender.name, port, child: contender.start(place, port), memory: 0 }
})
try {
  for (const port of [place.upstreamPort, ...entrants.map(({ port }) => port)]) await listening(port)
  for (const load of LOADS) await compare(load)
  for (const { name, child } of entrants) {
    process.stdout.write(
      `${name}: ${(usage(child.pid!).rssBytes / 2 ** 20).toFixed(0)} MiB resident after it all\n`,
    )
  }
} finally {
  for (const { child } of [...entrants, { child: upstream }]) {
    child.kill()
    await once(child, 'exit')
  }
  rmSync(folder, { recursive: true, force: true })
}

async function compare(load: (typeof LOADS)[number]): Promise<void> {
  const samples = new Map<string, (Result & { readonly cpuMicros: number })[]>(
    entrants.map(({ name }) => [name, []]),
  )
  for (let round = 0; round <= rounds; round++) {
    for (const { name, port, child } of entrants) {
      if (name === 'http-proxy' && load.name.startsWith('h2')) continue // it speaks none
      const before = usage(child.pid!).cpuSeconds
      const result = await load.run(port, seconds, '1')
      const cpuMicros = ((usage(child.pid!).cpuSeconds - before) * 1e6) / result.requests
      if (round > 0) samples.get(name)!.push({ ...result, cpuMicros }) // the first one warms up
    }
  }
  process.stdout.write(
    `\n${load.name}\n| | CPU µs/request | × nginx | requests/s | p50 ms | p99 ms | errors |\n|---|---|---|---|---|---|---|\n`,
  )
  const base = quartile((samples.get('nginx') ?? []).map(({ cpuMicros }) => cpuMicros))
  for (const [name, taken] of samples) {
    if (taken.length === 0) continue
    const cpu = quartile(taken.map(({ cpuMicros }) => cpuMicros))
    const rate = taken.map((each) => each.requests / each.seconds).toSorted((a, b) => b - a)[
      Math.floor(taken.length / 4)
    ]!
    const columns = [cpu.toFixed(1), (cpu / base).toFixed(2), rate.toFixed(0), ...latencies(taken)]
    process.stdout.write(
      `| ${name} | ${columns.join(' | ')} | ${taken.reduce((sum, each) => sum + each.errors, 0)} |\n`,
    )
  }
}

function latencies(taken: readonly Result[]): string[] {
  return [quartile(taken.map(({ p50Ms }) => p50Ms)), quartile(taken.map(({ p99Ms }) => p99Ms))].map((ms) =>
    Number.isNaN(ms) ? '–' : ms.toFixed(2),
  )
}

/** The machine is noisy upwards only: the 25th percentile is what a request costs. */
function quartile(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 4)] ?? Number.NaN
}

function isHere(name: string): boolean {
  if (name === 'gatehouse' || name === 'http-proxy') return true
  if (spawnSync(name, ['-v']).error === undefined) return true
  process.stdout.write(`${name} is not installed: left out\n`)
  return false
}

function certificate(into: string): { certificate: string; key: string } {
  const [file, key] = [join(into, 'cert.pem'), join(into, 'key.pem')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  const subject = ['-subj', '/CN=localhost', '-days', '2']
  execFileSync('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', key, '-out', file], {
    stdio: 'ignore',
  })
  writeFileSync(join(into, 'both.pem'), readFileSync(file, 'utf8') + readFileSync(key, 'utf8'))
  return { certificate: file, key }
}
