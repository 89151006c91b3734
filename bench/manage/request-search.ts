import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ALL_APPS } from '../../src/apps/app-scope.ts'
import type { RequestFilter } from '../../src/store/traffic/request-filter.ts'
import { Store } from '../../src/store/store.ts'
import { SightingSource } from './sightings.ts'

/**
 * How long a search for 50 requests takes, with each filter. `npm run bench:request-search -- [--rows N]
 * [POSTGRES-URL]`, of a database that is empty.
 */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { rows: { type: 'string', default: '1000000' } },
    allowPositionals: true,
  })
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-search-'))
  const store = await Store.open(positionals[0] ?? `sqlite:${join(folder, 'gatehouse.db')}`)
  try {
    const source = new SightingSource(Date.now() - 86_400_000, 0, 20)
    const old = { agent: 'agent-old', rule: 'old', path: '/old' }
    for (let rows = 0; rows < Number(values.rows); rows += BATCH) {
      const batch = source.batch(BATCH).map((each, at) => (rows === 0 && at < 5 ? { ...each, ...old } : each))
      await store.transaction((queries) => store.sightings.add(batch, Date.now(), queries))
    }
    const [newest] = await store.sightings.newest(null, 1)
    const searches: Readonly<Record<string, Partial<RequestFilter>>> = {
      none: {},
      id: { id: newest!.document.id },
      'rare host': { host: 'quiet.example.test' },
      'frequent host': { host: 'www.example.test' },
      'one app': { apps: new Set(['app-7']) },
      'one address': { addresses: [['4c6330141', '4c6330141']] },
      'a network': { addresses: [['4c6330300', '4c63303ff']] },
      'rare agent': { profile: { agent: 'agent-old' } },
      'frequent agent': { profile: { agent: 'agent-3' } },
      'frequent JA4': { profile: { ja4: 't13d1516h2_8daaf6150010_b186095e22b6' } },
      'rare rule': { profile: { rule: 'old' } },
      'rare path': { pathPrefix: '/old' },
      'unknown host': { host: 'none.example.test' },
    }
    say(`${store.kind}, ${values.rows} rows: ms of the first search, median of ${ROUNDS}, what was found`)
    for (const [name, filter] of Object.entries(searches)) {
      const times: number[] = []
      let found = ''
      for (let round = 0; round < ROUNDS; round++) {
        const startedMs = performance.now()
        const answer = await store.sightings.search({ apps: ALL_APPS, ...filter }, () => true, null, 50)
        times.push(performance.now() - startedMs)
        found = `${answer.found.length}${answer.stoppedAtMs === null ? '' : ', stopped'}`
      }
      const [first = 0] = times
      const median = times.toSorted((one, other) => one - other)[ROUNDS >> 1]!
      say(`${name.padEnd(16)} ${first.toFixed(1).padStart(7)} ${median.toFixed(1).padStart(7)}  ${found}`)
    }
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

const BATCH = 2_000
const ROUNDS = 7

await main()
