import { readFileSync, writeFileSync } from 'node:fs'
import { DATA_MAP, OTHER_PLACES } from '../../src/store/data-map/data-map.ts'
import type { TableData } from '../../src/store/data-map/table-data.ts'
import { CLICKHOUSE_DATA } from '../../src/store/data-map/traffic-data.ts'

/** The tables of the section of config/guide/privacy.md: this file writes them, and a test compares them. */
export function dataMapText(): string {
  const tables = Object.entries(DATA_MAP).flatMap(([name, data]) => rowOf(`\`${name}\``, data))
  const places = OTHER_PLACES.map(({ place, holds, kept }) => `| ${place} | ${holds} | ${kept} |`)
  return [
    ...['| table | of a person | why | kept for | `gatehouse erase` |', '|---|---|---|---|---|'],
    ...[...tables, ...rowOf('`requests` in ClickHouse', CLICKHOUSE_DATA)],
    ...['', 'The other tables hold nothing of a person. `gatehouse erase` does not reach:', ''],
    ...['| place | holds | kept for |', '|---|---|---|', ...places],
  ].join('\n')
}

export function withDataMap(page: string): string {
  const [before, rest] = [page.slice(0, page.indexOf(HEADING)), page.slice(page.indexOf(HEADING))]
  const end = rest.indexOf('\n## ', HEADING.length)
  const intro = rest.slice(0, rest.indexOf('| table |'))
  return `${before}${intro}${dataMapText()}\n${end === -1 ? '' : rest.slice(end)}`
}

function rowOf(name: string, { personal, purpose }: TableData): readonly string[] {
  if (purpose === null) return []
  const columns = Object.entries(personal).map(([column, what]) => `\`${column}\`: ${what}`)
  return [`| ${name} | ${columns.join('; ')} | ${purpose.why} | ${purpose.kept} | ${purpose.erased} |`]
}

export const PRIVACY_PAGE = new URL('../../config/guide/privacy.md', import.meta.url)
const HEADING = '## What is kept where'

if (import.meta.main) writeFileSync(PRIVACY_PAGE, withDataMap(readFileSync(PRIVACY_PAGE, 'utf8')))
