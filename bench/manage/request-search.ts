import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ALL_APPS } from '../../src/apps/app-scope.ts'
import type { RequestFilter } from '../../src/store/traffic/request-filter.ts'
import { Store } from '../../src/store/store.ts'
import { SightingSource } from './sightings.ts'

/**
 * How long a search for 50 requests takes, with each filter, once the database is warm. `npm run bench:request-search --
 * [--rows N] [--rounds N] [POSTGRES-URL]`, of a database that is empty. `stopped`: the search has ended before all rows were
 * looked at, and `GET /v1/requests` says so in `stopped_at`.
 */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      rows: { type: 'string', default: '10000000' },
      rounds: { type: 'string', default: '21' },
    },
    allowPositionals: true,
  })
  const rows = Number(values.rows)
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-search-'))
  const store = await Store.open(positionals[0] ?? `sqlite:${join(folder, 'gatehouse.db')}`)
  try {
    const startedMs = performance.now()
    await fill(store, rows)
    const [newest] = await store.sightings.newest(null, 1)
    const { id, seenAtMs } = newest!.document
    const filledS = (performance.now() - startedMs) / 1000
    say(`${store.kind}, ${rows} rows, filled in ${filledS.toFixed(0)} s\n`)
    say('| filter | p50, ms | p95, ms | found |\n|---|---:|---:|---|')
    for (const [name, filter] of Object.entries(searchesFor(id, seenAtMs, rows))) {
      const { times, found } = await timed(store, filter, Number(values.rounds))
      const at = (share: number) => times[Math.ceil(share * times.length) - 1]!.toFixed(1)
      say(`| ${name} | ${at(0.5)} | ${at(0.95)} | ${found} |`)
    }
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
}

async function fill(store: Store, rows: number): Promise<void> {
  const source = new SightingSource(Date.now() - 86_400_000, 0, 20)
  const old = { agent: 'agent-old', rule: 'old', path: '/old' }
  for (let done = 0; done < rows; done += BATCH) {
    const batch = source.batch(BATCH).map((each, at) => (done === 0 && at < 5 ? { ...each, ...old } : each))
    await store.transaction((queries) => store.sightings.add(batch, Date.now(), queries, []))
    if (done % 1_000_000 === 0) process.stderr.write(`${done} rows\n`)
  }
}

/** The times of the rounds after the first, in order, and what was found. */
async function timed(store: Store, filter: Partial<RequestFilter>, rounds: number) {
  const times: number[] = []
  let found = ''
  for (let round = 0; round <= rounds; round++) {
    const startedMs = performance.now()
    const answer = await store.sightings.search({ apps: ALL_APPS, ...filter }, () => true, null, 50)
    if (round > 0) times.push(performance.now() - startedMs)
    found = `${answer.found.length}${answer.stoppedAtMs === null ? '' : ', stopped'}`
  }
  return { times: times.sort((one, other) => one - other), found }
}

function searchesFor(
  id: string,
  newestMs: number,
  rows: number,
): Readonly<Record<string, Partial<RequestFilter>>> {
  return {
    none: {},
    id: { id },
    'one app': { apps: new Set(['app-7']) },
    'unknown app': { apps: new Set(['app-none']) },
    'rare host': { host: 'quiet.example.test' },
    'frequent host': { host: 'www.example.test' },
    'unknown host': { host: 'none.example.test' },
    'one address': { addresses: [['4c6330141', '4c6330141']] },
    'a network': { addresses: [['4c6330300', '4c63303ff']] },
    'unknown address': { addresses: [['4c0000201', '4c0000201']] },
    'frequent agent': { profile: { agent: 'agent-3' } },
    'rare agent': { profile: { agent: 'agent-old' } },
    'unknown agent': { profile: { agent: 'agent-none' } },
    verdict: { profile: { verdict: 'agent' } },
    'unknown verdict': { profile: { verdict: 'unknown' } },
    'frequent JA4': { profile: { ja4: 't13d1516h2_8daaf6150010_b186095e22b6' } },
    JA4H: { ja4h: `ge20nn14enus_${'000000000003'}_000000000000_${'000000000000'}` },
    'rare rule': { profile: { rule: 'old' } },
    action: { profile: { done: 'block' } },
    'frequent purpose': { purpose: 'search' },
    'unknown purpose': { purpose: 'training' },
    proof: { verified: 'ip-range' },
    'unknown proof': { verified: 'signature' },
    conflict: { conflict: 'signature-failed' },
    campaign: { campaign: { id: 'cmp_none', pages: null } },
    'MCP method': { mcpMethod: 'tools/call' },
    'HTTP version': { httpVersion: '11' },
    'frequent path': { pathPrefix: '/articles/7' },
    'rare path': { pathPrefix: '/old' },
    'the last second': { sinceMs: newestMs - 1_000 },
    'a second in the middle': { sinceMs: newestMs - rows / 20, untilMs: newestMs - rows / 20 + 1_000 },
    'app and rare agent': { apps: new Set(['app-7']), profile: { agent: 'agent-old' } },
    'host and rare path': { host: 'www.example.test', pathPrefix: '/old' },
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

const BATCH = 2_000

await main()
