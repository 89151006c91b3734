import { ALL_APPS } from '../../../apps/app-scope.ts'
import { REQUEST_KIND } from '../../../classify/campaign/seen-request.ts'
import { idPlace, idTimeMs } from '../../catalogue/place-ranges.ts'
import type { RequestFilter } from '../request-filter.ts'
import type { ClickHouseValue } from './clickhouse.ts'
import { NUMBERS_PER_MS } from './request-table.ts'

/** The conditions of a search in ClickHouse. */
export interface TableConditions {
  readonly texts: readonly string[]
  readonly values: Readonly<Record<string, ClickHouseValue>>
  /** Requests that fit have at least this number. */
  readonly from: number
}

export function conditionsIn(filter: RequestFilter): TableConditions {
  const { apps, sinceMs, untilMs, id, host, pathPrefix, addresses, ja4h, campaign, purpose } = filter
  const { verified, conflict, httpVersion, mcpMethod, mcpTool, profile = {} } = filter
  const texts: string[] = []
  const values: Record<string, ClickHouseValue> = {}
  const add = (text: string, more: Readonly<Record<string, ClickHouseValue>>) => {
    texts.push(text)
    Object.assign(values, more)
  }
  if (apps !== ALL_APPS) add('app IN {apps:Array(String)}', { apps: [...apps] })
  if (sinceMs !== undefined) add('seen_at_ms >= {since:Float64}', { since: sinceMs })
  if (untilMs !== undefined) add('seen_at_ms <= {until:Float64}', { until: untilMs })
  if (id !== undefined) add(idPlace(id) === null ? '0' : 'id = {id:UUID}', { id })
  if (host !== undefined) add('host = {host:String}', { host })
  if (pathPrefix !== undefined) add('startsWith(path, {path:String})', { path: pathPrefix })
  if (addresses !== undefined) {
    // A bloom index answers equality only.
    const each = addresses.map(([first, last], at) =>
      first === last
        ? `address_key = {first_${at}:String}`
        : `address_key BETWEEN {first_${at}:String} AND {last_${at}:String}`,
    )
    const ends = addresses.flatMap(([first, last], at) => [
      [`first_${at}`, first],
      ...(first === last ? [] : [[`last_${at}`, last]]),
    ])
    add(`(${each.join(' OR ')})`, Object.fromEntries(ends))
  }
  if (ja4h !== undefined) add('ja4h = {ja4h:String}', { ja4h })
  if (purpose !== undefined) add('has(purposes, {purpose:String})', { purpose })
  if (conflict !== undefined) add('has(evidence, {conflict:String})', { conflict })
  if (mcpMethod !== undefined) add('mcp_method = {mcp_method:String}', { mcp_method: mcpMethod })
  if (mcpTool !== undefined) add('mcp_tool = {mcp_tool:String}', { mcp_tool: mcpTool })
  if (typeof verified === 'string') add('verified = {verified:String}', { verified })
  else if (verified !== undefined) add(`verified IS ${verified ? 'NOT ' : ''}NULL`, {})
  if (httpVersion !== undefined) add('substring(ja4h, 3, 2) = {version:String}', { version: httpVersion })
  for (const [column, value] of Object.entries(profile))
    if (value !== undefined) add(`${column} = {is_${column}:String}`, { [`is_${column}`]: value })
  if (campaign !== undefined) {
    const { id: campaignId, pages } = campaign
    const isOf = 'campaign = {campaign:String}'
    if (pages === null) add(isOf, { campaign: campaignId })
    else {
      const isHost = pages.host === null ? 'host IS NULL' : 'host = {page_host:String}'
      const isPage = `(request_kind = ${REQUEST_KIND.page} AND ${isHost})`
      const host = pages.host === null ? {} : { page_host: pages.host }
      add(`program = {program:UInt32} AND (${isOf} OR ${isPage})`, {
        campaign: campaignId,
        program: pages.program,
        ...host,
      })
    }
  }
  const seenMs = Math.max(sinceMs ?? 0, id === undefined || idPlace(id) === null ? 0 : idTimeMs(id))
  return { texts, values, from: Math.max(0, seenMs - CLOCKS_MS) * NUMBERS_PER_MS }
}

/** How far the clock of a proxy may be ahead of the manager's. */
const CLOCKS_MS = 86_400_000
