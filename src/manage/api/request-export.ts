import { setImmediate as nextTurn } from 'node:timers/promises'
import * as z from 'zod'
import { appListOf } from '../../apps/app-scope.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { csv } from '../../shared/csv.ts'
import { ParquetFile } from '../export/parquet-file.ts'
import { csvCell, REQUEST_COLUMNS, WEIGHT } from '../export/request-columns.ts'
import { addAudit } from '../http/audit.ts'
import { actorOf } from '../http/operation.ts'
import { integerInQuery } from '../http/schemas.ts'
import { sightOf } from '../intake/personal-data.ts'
import { operation } from './operation.ts'
import { REQUEST_FILTERS, wantedRequests } from './request-filters.ts'
import { shownAll, type ShownRequest } from './request-views.ts'

/** Some hundred kilobytes. */
const PAGE = 500

/** How a file is made, part by part. */
interface FileParts {
  head(): string | Uint8Array
  rows(requests: readonly ShownRequest[]): string | Uint8Array
  end(): string | Uint8Array
}

interface Format {
  readonly type: string
  /** The requests of a part. */
  readonly rows: number
  begin(): FileParts
}

const FORMATS = {
  ndjson: {
    type: 'application/x-ndjson',
    rows: PAGE,
    begin: () => ({
      head: () => '',
      rows: (requests) => requests.map((each) => `${JSON.stringify(each)}\n`).join(''),
      end: () => '',
    }),
  },
  csv: {
    type: 'text/csv',
    rows: PAGE,
    begin: () => ({
      head: () => csv([REQUEST_COLUMNS.map(({ name }) => name)]),
      rows: (requests) => csv(requests.map((each) => REQUEST_COLUMNS.map((column) => csvCell(column, each)))),
      end: () => '',
    }),
  },
  parquet: {
    type: 'application/vnd.apache.parquet',
    // A row group, which readers read at once.
    rows: 8 * PAGE,
    begin: () => {
      const file = new ParquetFile([...REQUEST_COLUMNS, WEIGHT])
      return { head: () => file.add([]), rows: (requests) => file.add(requests), end: () => file.end() }
    },
  },
} satisfies Record<string, Format>

export const exportRequests = operation({
  id: 'exportRequests',
  method: 'GET',
  path: '/requests/export',
  tag: 'Statistics',
  summary: 'Export requests as a file',
  description:
    'The recorded requests that fit the filters, newest first, as a file that is sent while it is read. The columns of CSV and Parquet are the members of a request, without `network`. In CSV, lists are separated by spaces, and cells that a spreadsheet would run as a formula begin with an apostrophe. In Parquet, `seen_at` is a timestamp, lists are lists, and `weight` says how many requests each stands for. An export shows what the list shows, and is noted in the audit log. It takes at most ten minutes. If it ends early, the connection is closed before the end of the file.',
  scopes: ['read'],
  reach: 'filtered',
  query: z.strictObject({
    ...REQUEST_FILTERS,
    format: z
      .enum(Object.keys(FORMATS) as (keyof typeof FORMATS)[])
      .default('ndjson')
      .meta({
        description: '`ndjson`: a JSON object on each line. `parquet`: Apache Parquet with Snappy.',
        override: { default: 'ndjson' },
      }),
    limit: integerInQuery(1, 1_000_000, 100_000, 'The most requests.'),
  }),
  files: {
    [FORMATS.ndjson.type]: {
      description: 'On each line, an object as in the list of requests.',
      example: '{"id":"01a209b9-5d03-7000-8002-190b89a95204","verdict":"agent","path":"/"}\n',
    },
    [FORMATS.csv.type]: {
      description: 'RFC 4180, in UTF-8, with a head.',
      example: 'id,seen_at,app\r\n01a209b9-5d03-7000-8002-190b89a95204,2026-11-21T09:30:00.000Z,shop\r\n',
    },
    [FORMATS.parquet.type]: {
      description: 'A binary file. Its columns have statistics, in row groups of up to 4,000 requests.',
      example: 'PAR1',
    },
  },
  run: async (call, management) => {
    const { format, limit, ...filters } = call.query
    const { store, nowMs } = management
    const { principal } = call
    const { filter, isWanted } = await wantedRequests(filters, principal, management)
    const { type, rows, begin }: Format = FORMATS[format]
    const detail = { format, limit, ...filters }
    const change = { action: 'exportRequests', subject: null, apps: appListOf(principal.apps), detail }
    const parts = async function* (over: AbortSignal) {
      // Nothing leaves before it is noted.
      await store.transaction((queries) => addAudit(store, actorOf(call), change, nowMs(), queries))
      const file = begin()
      yield file.head()
      let before: number | null = null
      let left = limit
      let waiting: Sighting[] = []
      do {
        const page = await store.sightings.search(filter, isWanted, before, Math.min(left, PAGE))
        if (over.aborted) throw endedEarly()
        waiting.push(...page.found)
        left -= page.found.length
        before = page.next
        const isLast = before === null || left === 0
        if (waiting.length >= rows || (isLast && waiting.length > 0)) {
          const shown = await shownAll(waiting, sightOf(principal), management)
          waiting = []
          yield file.rows(shown)
        }
        await nextTurn()
      } while (before !== null && left > 0)
      yield file.end()
    }
    return { body: { name: `requests.${format}`, type, parts } }
  },
})

/** Not a bug: the time is over, or the caller lost its access. */
function endedEarly(): Error {
  return Object.assign(new Error('the export has ended early'), { code: 'ECANCELED' })
}
