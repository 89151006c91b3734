import { zstdCompress, zstdDecompress } from 'node:zlib'
import { promisify } from 'node:util'
import type { Sighting } from '../../../plane/sighting.ts'
import { storedAddressKey } from '../../../plane/privacy/address-form.ts'
import type { ClickHousePlace } from './clickhouse.ts'

// The table `requests` in ClickHouse: the only place that turns a Sighting into its columns, and back.

const FEW = 'LowCardinality(String)'
const FEW_OR_NULL = 'LowCardinality(Nullable(String))'
const LIST = `Array(${FEW})`
const HASH = 'UInt32'
/** The column, its type, and what of a Sighting it holds. */
const COLUMNS: readonly (readonly [name: string, type: string, key: keyof Sighting])[] = [
  ['id', 'UUID CODEC(ZSTD)', 'id'],
  ['seen_at_ms', 'Int64 CODEC(Delta, ZSTD)', 'seenAtMs'],
  ['app', FEW, 'app'],
  ['host', FEW_OR_NULL, 'host'],
  ['address', 'String CODEC(ZSTD)', 'address'],
  ['method', FEW, 'method'],
  ['path', 'String CODEC(ZSTD)', 'path'],
  ['proxy', FEW, 'proxy'],
  ['user_agent', FEW_OR_NULL, 'userAgent'],
  ['ja4', FEW_OR_NULL, 'ja4'],
  ['ja4_source', FEW_OR_NULL, 'ja4Source'],
  ['no_hello', FEW_OR_NULL, 'noHello'],
  ['stable', FEW_OR_NULL, 'stable'],
  ['ja4s', FEW_OR_NULL, 'ja4s'],
  ['ja4h', 'Nullable(String) CODEC(ZSTD)', 'ja4h'],
  ['ja4x', FEW_OR_NULL, 'ja4x'],
  ['http2', FEW_OR_NULL, 'http2'],
  ['program', HASH, 'program'],
  ['verdict', FEW, 'verdict'],
  ['agent', FEW_OR_NULL, 'agent'],
  ['category', FEW_OR_NULL, 'category'],
  ['purposes', LIST, 'purposes'],
  ['software', FEW_OR_NULL, 'software'],
  ['confidence', 'Float64 CODEC(ZSTD)', 'confidence'],
  ['name_confidence', 'Float64 CODEC(ZSTD)', 'nameConfidence'],
  ['verified', FEW_OR_NULL, 'verified'],
  ['signer', FEW_OR_NULL, 'signer'],
  ['key', FEW_OR_NULL, 'key'],
  ['signature_fault', FEW_OR_NULL, 'signatureFault'],
  ['alleged_signer', FEW_OR_NULL, 'allegedSigner'],
  ['evidence', LIST, 'evidence'],
  ['rule', FEW, 'rule'],
  ['layer', FEW_OR_NULL, 'layer'],
  ['action', FEW, 'action'],
  ['dry_run', 'Bool', 'dryRun'],
  ['done', FEW, 'done'],
  ['limited', 'Bool', 'limited'],
  ['forged', LIST, 'forged'],
  ['snapshot', 'Float64 CODEC(ZSTD)', 'snapshot'],
  ['request_kind', HASH, 'requestKind'],
  ['header_order', HASH, 'headerOrder'],
  ['target', HASH, 'target'],
  ['campaign', FEW_OR_NULL, 'campaign'],
  ['sampled', 'Nullable(Float64) CODEC(ZSTD)', 'sampled'],
  ['mcp_method', FEW_OR_NULL, 'mcpMethod'],
  ['mcp_tool', FEW_OR_NULL, 'mcpTool'],
]
const NAMES = COLUMNS.map(([name]) => name)

/** A request with its number, as `READ` selects it. */
export type HeldRow = readonly [number: number, ...values: unknown[]]

export const READ = ['number', ...NAMES].join(', ')

export function sightingIn([, ...values]: HeldRow): Sighting {
  const stored = Object.fromEntries(COLUMNS.map(([, , key], at) => [key, values[at]]))
  return { ...stored, visitor: null } as unknown as Sighting
}

/** The table and the columns that `written` fills. */
export const INTO = `requests (number, address_key, ${NAMES.join(', ')})`

/** Numbered from `first` on, as compressed lines of JSON. */
export async function written(sightings: readonly Sighting[], first: number): Promise<Buffer> {
  const lines = sightings.map((sighting, at) => {
    const whole = sighting.sampled === 1 ? { ...sighting, sampled: null } : sighting
    const values = COLUMNS.map(([, , key]) => whole[key])
    return `${JSON.stringify([first + at, storedAddressKey(sighting.address), ...values])}\n`
  })
  return compressed(lines.join(''))
}

/**
 * Compressed lines of `written` without those of some addresses; `null`: none is left. `ja4h`: those of the lines that were
 * left out.
 */
export async function withoutAddresses(
  lines: Buffer,
  isUnwanted: (address: string) => boolean,
): Promise<{ readonly left: Buffer | null; readonly ja4h: readonly (string | null)[] }> {
  const all = String(await decompressed(lines))
    .split('\n')
    .slice(0, -1)
  const ja4h: (string | null)[] = []
  const left = all.filter((line) => {
    const values: readonly unknown[] = JSON.parse(line)
    if (!isUnwanted(String(values[ADDRESS_AT]))) return true
    ja4h.push(values[JA4H_AT] as string | null)
    return false
  })
  return { left: left.length === 0 ? null : await compressed(left.map((line) => `${line}\n`).join('')), ja4h }
}

/** The statements that make the table, and add columns and indexes of later versions to it. */
export function tableStatements({ cluster }: ClickHousePlace): readonly string[] {
  if (cluster === null)
    return [createTable('requests', '', ENGINE), addColumns('requests', ''), addIndexes('requests', '')]
  const on = `ON CLUSTER '${cluster}'`
  return [
    createTable('requests_here', on, REPLICATED),
    `CREATE TABLE IF NOT EXISTS requests ${on} AS requests_here ENGINE = Distributed('${cluster}', currentDatabase(), requests_here, cityHash64(id))`,
    addColumns('requests_here', on),
    addColumns('requests', on),
    // A Distributed table has none.
    addIndexes('requests_here', on),
  ]
}

/** The table that holds the rows of this server. */
export function heldTable({ cluster }: ClickHousePlace): string {
  return cluster === null ? 'requests' : 'requests_here'
}

/** After which time a row is deleted. */
export function expiry(retentionMs: number): string {
  return `toDateTime(${STORED_AT_S}) + toIntervalSecond(${Math.ceil(retentionMs / 1000)})`
}

/** Numbers grow with the time of storing: so many in a millisecond. */
export const NUMBERS_PER_MS = 4096
const STORED_AT_S = `intDiv(number, ${NUMBERS_PER_MS * 1000})`

function createTable(name: string, on: string, engine: string): string {
  const columns = [
    'number UInt64 CODEC(Delta, ZSTD)',
    'address_key Nullable(String) CODEC(ZSTD)',
    ...COLUMNS.map(([column, type]) => `${column} ${type}`),
    `seen_at DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(seen_at_ms, 'UTC')`,
    ...['id', 'address_key', 'ja4', 'agent', 'host', 'campaign'].map(
      (column) => `INDEX by_${column} ${column} TYPE bloom_filter GRANULARITY 1`,
    ),
    `INDEX ${BY_TIME}`,
  ]
  return `CREATE TABLE IF NOT EXISTS ${name} ${on} (${columns.join(', ')})
    ENGINE = ${engine}
    PARTITION BY toYYYYMMDD(toDateTime(${STORED_AT_S}, 'UTC'))
    ORDER BY (app, number)
    SETTINGS ${engine === ENGINE ? 'non_replicated_deduplication_window' : 'replicated_deduplication_window'} = 10000`
}

/** Those that are there stay as they are. */
function addColumns(name: string, on: string): string {
  const columns = COLUMNS.map(([column, type]) => `ADD COLUMN IF NOT EXISTS ${column} ${type}`)
  return `ALTER TABLE ${name} ${on} ${columns.join(', ')}`
}

/** Rows that are there get them with the next merge of their part. */
function addIndexes(name: string, on: string): string {
  return `ALTER TABLE ${name} ${on} ADD INDEX IF NOT EXISTS ${BY_TIME}`
}

/** A proxy's clock may differ from the manager's by a day, so the order by number alone skips few rows. */
const BY_TIME = 'by_seen_at seen_at_ms TYPE minmax GRANULARITY 1'
const compressed = promisify(zstdCompress)
const decompressed = promisify(zstdDecompress)
/** In a line: behind the number and the key of the address. */
const ADDRESS_AT = 2 + NAMES.indexOf('address')
const JA4H_AT = 2 + NAMES.indexOf('ja4h')
const ENGINE = 'MergeTree'
const REPLICATED = `ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/requests_here', '{replica}')`
