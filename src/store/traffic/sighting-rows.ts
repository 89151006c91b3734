import type { Selectable } from 'kysely'
import type { Sighting, SightingId } from '../../plane/sighting.ts'
import { storedAddressKey } from '../../plane/privacy/address-form.ts'
import { insertRows } from '../engine/arrays.ts'
import type { Queries } from '../engine/database.ts'
import type { SightingProfileTable, SightingTable } from '../engine/tables/sightings.ts'

// The only place that turns a Sighting into columns, and columns into a Sighting.

export type SightingRow = Selectable<SightingTable>
export type ProfileRow = Omit<Selectable<SightingProfileTable>, 'id' | 'hash' | 'used_at_ms'>

export function rowOf(
  sighting: Sighting,
  { number, profile }: Pick<SightingRow, 'number' | 'profile'>,
): SightingRow {
  return {
    number,
    id: sighting.id,
    seen_at_ms: sighting.seenAtMs,
    profile,
    app: sighting.app,
    host: sighting.host,
    address: sighting.address,
    address_key: storedAddressKey(sighting.address),
    method: sighting.method,
    path: sighting.path,
    ja4h_cookies: ja4hParts(sighting.ja4h).cookies,
    snapshot: sighting.snapshot,
    request_kind: sighting.requestKind,
    header_order: sighting.headerOrder,
    target: sighting.target,
    campaign: sighting.campaign,
    sampled: sighting.sampled === 1 ? null : sighting.sampled,
    mcp_method: sighting.mcpMethod,
    mcp_tool: sighting.mcpTool,
  }
}

export function profileOf(sighting: Sighting): ProfileRow {
  return {
    proxy: sighting.proxy,
    user_agent: sighting.userAgent,
    ja4: sighting.ja4,
    ja4_source: sighting.ja4Source,
    no_hello: sighting.noHello,
    stable: sighting.stable,
    ja4s: sighting.ja4s,
    ja4h: ja4hParts(sighting.ja4h).common,
    ja4x: sighting.ja4x,
    http2: sighting.http2,
    program: sighting.program,
    verdict: sighting.verdict,
    agent: sighting.agent,
    category: sighting.category,
    purposes: JSON.stringify(sighting.purposes),
    software: sighting.software,
    confidence: sighting.confidence,
    name_confidence: sighting.nameConfidence,
    verified: sighting.verified,
    signer: sighting.signer,
    key: sighting.key,
    signature_fault: sighting.signatureFault,
    alleged_signer: sighting.allegedSigner,
    evidence: JSON.stringify(sighting.evidence),
    rule: sighting.rule,
    layer: sighting.layer,
    action: sighting.action,
    dry_run: sighting.dryRun ? 1 : 0,
    done: sighting.done,
    limited: sighting.limited ? 1 : 0,
    forged: JSON.stringify(sighting.forged),
  }
}

/** The columns of a profile as one text, for its hash. */
export function textOf(profile: ProfileRow): string {
  return JSON.stringify(Object.values(profile))
}

/** Equal for Sightings with equal profiles, and made in a third of the time of their text. */
export function keyOf(sighting: Sighting): string {
  const { proxy, userAgent, ja4, ja4Source, noHello, stable, ja4s, ja4h, ja4x, http2, program } = sighting
  const { verdict, agent, category, purposes, software, confidence, nameConfidence, verified } = sighting
  const { signer, key, signatureFault, allegedSigner, evidence, rule, layer, action, dryRun } = sighting
  const { done, limited, forged } = sighting
  const client = `${sized(userAgent)}${sized(ja4)}${sized(stable)}${sized(ja4hParts(ja4h).common)}${sized(http2)}`
  const stack = `${sized(proxy)}${sized(ja4Source)}${sized(noHello)}${sized(ja4s)}${sized(ja4x)}${program} `
  const who = `${sized(verdict)}${sized(agent)}${sized(category)}${sized(software)}${confidence} ${nameConfidence} `
  const proof = `${sized(verified)}${sized(signer)}${sized(key)}${sized(signatureFault)}${sized(allegedSigner)}`
  const deed = `${sized(rule)}${sized(layer)}${sized(action)}${dryRun} ${sized(done)}${limited} `
  const lists = `${evidence.map(sized)} ${purposes.map(sized)} ${forged.map(sized)}`
  return client + stack + who + proof + deed + lists
}

/** With its length, so that no text stands for two. */
function sized(text: string | null): string {
  return text === null ? '-' : `${text.length}:${text}`
}

export async function insertSightings(rows: readonly SightingRow[], queries: Queries): Promise<void> {
  await insertRows('sightings', rows, SIGHTING_COLUMNS, '', queries)
}

export async function insertProfiles(
  rows: readonly (ProfileRow & Pick<Selectable<SightingProfileTable>, 'hash' | 'used_at_ms'>)[],
  queries: Queries,
): Promise<void> {
  await insertRows('sighting_profiles', rows, PROFILE_COLUMNS, '', queries)
}

/** Of a row of `READ_COLUMNS`. It is not validated, because others may have written to the database. */
export function sightingOf(
  row: ProfileRow & Omit<SightingRow, 'number' | 'profile' | 'address_key'>,
): Sighting {
  return {
    id: row.id as SightingId,
    seenAtMs: row.seen_at_ms,
    proxy: row.proxy,
    address: row.address,
    method: row.method,
    host: row.host,
    app: row.app,
    path: row.path,
    userAgent: row.user_agent,
    ja4: row.ja4,
    ja4Source: row.ja4_source as Sighting['ja4Source'],
    noHello: row.no_hello as Sighting['noHello'],
    stable: row.stable,
    ja4s: row.ja4s,
    ja4h: row.ja4h_cookies === null ? row.ja4h : `${row.ja4h}_${row.ja4h_cookies}`,
    ja4x: row.ja4x,
    http2: row.http2,
    verdict: row.verdict,
    agent: row.agent,
    category: row.category,
    purposes: textsIn(row.purposes),
    software: row.software,
    confidence: row.confidence,
    nameConfidence: row.name_confidence,
    verified: row.verified,
    signer: row.signer,
    key: row.key,
    signatureFault: row.signature_fault,
    allegedSigner: row.alleged_signer,
    evidence: textsIn(row.evidence),
    rule: row.rule,
    layer: row.layer,
    action: row.action,
    dryRun: row.dry_run === 1,
    done: row.done,
    limited: row.limited === 1,
    forged: textsIn(row.forged),
    snapshot: row.snapshot,
    requestKind: row.request_kind,
    program: row.program,
    headerOrder: row.header_order,
    target: row.target,
    campaign: row.campaign,
    visitor: null,
    sampled: row.sampled,
    mcpMethod: row.mcp_method,
    mcpTool: row.mcp_tool,
  }
}

/** The cookies of a JA4H are those of a person, so a profile with them would hold one client only. */
export function ja4hParts(ja4h: string | null): {
  readonly common: string | null
  readonly cookies: string | null
} {
  const end = ja4h?.lastIndexOf('_') ?? -1
  if (ja4h === null || end === -1 || ja4h.endsWith(NO_COOKIES)) return { common: ja4h, cookies: null }
  return { common: ja4h.slice(0, end), cookies: ja4h.slice(end + 1) }
}

/** Lists are rarely other than empty or one of a few. */
export function textsIn(text: string): readonly string[] {
  if (text === '[]') return NONE
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : NONE
  } catch {
    return NONE
  }
}

const NONE: readonly string[] = []
const NO_COOKIES = '_000000000000'
/** Everything that `sightingOf` reads, with the number. */
export const READ_COLUMNS = [
  ...([
    'sightings.number',
    'sightings.id',
    'seen_at_ms',
    'app',
    'host',
    'address',
    'method',
    'path',
  ] as const),
  ...(['ja4h_cookies', 'snapshot', 'request_kind', 'header_order', 'target', 'campaign', 'sampled'] as const),
  ...(['mcp_method', 'mcp_tool'] as const),
  ...(['proxy', 'user_agent', 'ja4', 'ja4_source', 'no_hello', 'stable', 'ja4s', 'ja4h', 'ja4x'] as const),
  ...(['http2', 'program', 'verdict', 'agent', 'category', 'purposes', 'software', 'confidence'] as const),
  ...(['name_confidence', 'verified', 'signer', 'sighting_profiles.key', 'signature_fault'] as const),
  ...([
    'alleged_signer',
    'evidence',
    'rule',
    'layer',
    'action',
    'dry_run',
    'done',
    'limited',
    'forged',
  ] as const),
] as const
/** Every column, with its type in PostgreSQL. */
const SIGHTING_COLUMNS = {
  number: 'bigint',
  id: 'uuid',
  seen_at_ms: 'bigint',
  profile: 'bigint',
  app: 'text',
  host: 'text',
  address: 'text',
  address_key: 'text',
  method: 'text',
  path: 'text',
  ja4h_cookies: 'text',
  snapshot: 'double precision',
  request_kind: 'bigint',
  header_order: 'bigint',
  target: 'bigint',
  campaign: 'text',
  sampled: 'double precision',
  mcp_method: 'text',
  mcp_tool: 'text',
} as const
const PROFILE_COLUMNS = {
  hash: 'text',
  used_at_ms: 'bigint',
  proxy: 'text',
  user_agent: 'text',
  ja4: 'text',
  ja4_source: 'text',
  no_hello: 'text',
  stable: 'text',
  ja4s: 'text',
  ja4h: 'text',
  ja4x: 'text',
  http2: 'text',
  program: 'bigint',
  verdict: 'text',
  agent: 'text',
  category: 'text',
  purposes: 'text',
  software: 'text',
  confidence: 'double precision',
  name_confidence: 'double precision',
  verified: 'text',
  signer: 'text',
  key: 'text',
  signature_fault: 'text',
  alleged_signer: 'text',
  evidence: 'text',
  rule: 'text',
  layer: 'text',
  action: 'text',
  dry_run: 'bigint',
  done: 'text',
  limited: 'bigint',
  forged: 'text',
} as const
