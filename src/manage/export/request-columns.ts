import type { CsvCell } from '../../shared/csv.ts'
import type { RequestRow } from './request-row.ts'

/** A column of requests in a file. */
export type RequestColumn =
  | Column<'text', string | null>
  | Column<'texts', readonly string[]>
  | Column<'number', number>
  | Column<'time', string>

interface Column<Type extends string, Value> {
  readonly name: string
  readonly type: Type
  /** Every request has a value. */
  readonly isRequired: boolean
  readonly read: (request: RequestRow) => Value
}

/** All columns, in order: the members of a request as the API shows it. */
export const REQUEST_COLUMNS: readonly RequestColumn[] = [
  text('id', ({ id }) => id),
  { name: 'seen_at', type: 'time', isRequired: true, read: ({ seen_at }) => seen_at },
  text('app', ({ app }) => app),
  text('proxy', ({ proxy }) => proxy),
  text('method', ({ method }) => method),
  textOrNull('host', ({ host }) => host),
  text('path', ({ path }) => path),
  text('address', ({ address }) => address),
  textOrNull('user_agent', ({ user_agent }) => user_agent),
  text('verdict', ({ verdict }) => verdict),
  number('confidence', ({ confidence }) => confidence),
  number('name_confidence', ({ name_confidence }) => name_confidence),
  textOrNull('agent_id', ({ agent_id }) => agent_id),
  textOrNull('agent_name', ({ agent_name }) => agent_name),
  textOrNull('agent_category', ({ agent_category }) => agent_category),
  texts('agent_purpose', ({ agent_purpose }) => agent_purpose),
  textOrNull('software_id', ({ software_id }) => software_id),
  textOrNull('software_name', ({ software_name }) => software_name),
  textOrNull('verified', ({ verified }) => verified),
  textOrNull('identity', ({ identity }) => identity),
  texts('conflicts', ({ conflicts }) => conflicts),
  textOrNull('ja4', ({ fingerprints }) => fingerprints.ja4 || null),
  textOrNull('ja4s', ({ fingerprints }) => fingerprints.ja4s || null),
  textOrNull('ja4h', ({ fingerprints }) => fingerprints.ja4h || null),
  textOrNull('ja4x', ({ fingerprints }) => fingerprints.ja4x || null),
  texts('evidence', ({ evidence }) => evidence),
  textOrNull('campaign_id', ({ campaign_id }) => campaign_id),
  textOrNull('mcp_method', ({ mcp_method }) => mcp_method),
  textOrNull('mcp_tool', ({ mcp_tool }) => mcp_tool),
  text('rule', ({ rule }) => rule),
  textOrNull('layer', ({ layer }) => layer),
  text('action', ({ action }) => action),
  textOrNull('dry_run', ({ dry_run }) => dry_run),
  number('sampled', ({ sampled }) => sampled),
]

/** How many requests this one stands for, to add up. */
export const WEIGHT: RequestColumn = number('weight', ({ sampled }) => 1 / sampled)

/** A list is one cell, separated by spaces. */
export function csvCell(column: RequestColumn, request: RequestRow): CsvCell {
  return column.type === 'texts' ? column.read(request).join(' ') : column.read(request)
}

function text(name: string, read: (request: RequestRow) => string): RequestColumn {
  return { name, type: 'text', isRequired: true, read }
}

function textOrNull(name: string, read: (request: RequestRow) => string | null): RequestColumn {
  return { name, type: 'text', isRequired: false, read }
}

function texts(name: string, read: (request: RequestRow) => readonly string[]): RequestColumn {
  return { name, type: 'texts', isRequired: true, read }
}

function number(name: string, read: (request: RequestRow) => number): RequestColumn {
  return { name, type: 'number', isRequired: true, read }
}
