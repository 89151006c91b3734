import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ALL_APPS } from '../../src/apps/app-scope.ts'
import type { RequestFilter } from '../../src/store/traffic/request-filter.ts'
import { Store } from '../../src/store/store.ts'
import { CLICKHOUSE_DAYS, fill, fillClickHouse, SQL_DAYS } from './filled.ts'

/**
 * How long a search for 50 requests takes, with each filter, once the database is warm. `npm run bench:request-search --
 * [--rows N] [--rounds N] [--keep FILE] [POSTGRES-URL | CLICKHOUSE-URL]`, of a database that is empty. `stopped`: the search
 * has ended before all rows were looked at, and `GET /v1/requests` says so in `stopped_at`. With `--keep`, the file of SQLite
 * (with ClickHouse: what is beside it) stays, and a database that is there is measured as it is.
 */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      rows: { type: 'string', default: '10000000' },
      rounds: { type: 'string', default: '21' },
      keep: { type: 'string' },
    },
    allowPositionals: true,
  })
  const rows = Number(values.rows)
  const [url = ''] = positionals
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-search-'))
  const file = values.keep ?? join(folder, 'gatehouse.db')
  const isThere = existsSync(file)
  const isClickHouse = url.startsWith('clickhouse')
  const store = await (isClickHouse
    ? Store.open(`sqlite:${file}`, null, { url, login: null })
    : Store.open(url === '' ? `sqlite:${file}` : url))
  try {
    const startedMs = performance.now()
    if (!isThere) await (isClickHouse ? fillClickHouse(store, url, rows) : fill(store, rows))
    const filledS = ((performance.now() - startedMs) / 1000).toFixed(0)
    say(
      `${isClickHouse ? 'clickhouse' : store.kind}, ${rows} rows${isThere ? '' : `, filled in ${filledS} s`}\n`,
    )
    say('| filter | p50, ms | p95, ms | found |\n|---|---:|---:|---|')
    const [newest] = await store.sightings.newest(null, 1)
    const { id, seenAtMs } = newest!.document
    const middleMs = seenAtMs - ((isClickHouse ? CLICKHOUSE_DAYS : SQL_DAYS) * 86_400_000) / 2
    for (const [name, filter] of Object.entries(searchesFor(id, seenAtMs, middleMs))) {
      const { times, found } = await timed(store, filter, Number(values.rounds))
      const at = (share: number) => times[Math.ceil(share * times.length) - 1]!.toFixed(1)
      say(`| ${name} | ${at(0.5)} | ${at(0.95)} | ${found} |`)
    }
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
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
  middleMs: number,
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
    // Only ClickHouse has it.
    'an address of the middle': { addresses: [['4c6650141', '4c6650141']] },
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
    'a second in the middle': { sinceMs: middleMs, untilMs: middleMs + 1_000 },
    'app and rare agent': { apps: new Set(['app-7']), profile: { agent: 'agent-old' } },
    'host and rare path': { host: 'www.example.test', pathPrefix: '/old' },
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

await main()
