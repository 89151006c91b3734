import { type Kysely, sql } from 'kysely'
import { parseSighting } from '../../../plane/sighting-document.ts'
import type { Sighting } from '../../../plane/sighting.ts'
import { addressKey } from '../../../wire/address-ranges.ts'
import { parts } from '../bulk.ts'
import type { ColumnTypes, Migration } from '../migration.ts'
import type { Tables } from '../tables.ts'

/**
 * Sightings get columns instead of a JSON document. What they have in common is stored once, as a profile. Their numbers
 * begin anew.
 */
export const traffic: Migration = async (db, types) => {
  for (const statement of tables(types).trim().split(/;\n*/).slice(0, -1))
    await sql.raw(statement).execute(db)
  await carryOver(db)
  await sql`drop table sightings_before`.execute(db)
  // An index on a full table is made faster than one that grows with it.
  for (const statement of indexes.trim().split(/;\n*/).slice(0, -1)) await sql.raw(statement).execute(db)
}

const tables = ({ integer, key, real, serial, uuid }: ColumnTypes): string => `
drop index sightings_by_app;
alter table sightings rename to sightings_before;
create table sightings (
  number ${integer} primary key,
  id ${uuid} not null,
  seen_at_ms ${integer} not null,
  profile ${integer} not null,
  app ${key} not null,
  host ${key},
  address text not null,
  address_key ${key},
  method text not null,
  path ${key} not null,
  ja4h_cookies text,
  snapshot ${real} not null,
  request_kind ${integer} not null,
  header_order ${integer} not null,
  target ${integer} not null,
  campaign ${key}
);
create table sighting_parts (
  number ${integer} primary key,
  last_sighting ${integer} not null,
  first_seen_ms ${integer} not null,
  last_seen_ms ${integer} not null
);
create table sighting_profiles (
  id ${serial},
  hash ${key} not null,
  used_at_ms ${integer} not null,
  proxy ${key} not null,
  user_agent text,
  ja4 ${key},
  ja4_source text,
  no_hello text,
  stable text,
  ja4s text,
  ja4h ${key},
  ja4x text,
  http2 text,
  program ${integer} not null,
  verdict ${key} not null,
  agent ${key},
  category ${key},
  purposes text not null,
  software text,
  confidence ${real} not null,
  name_confidence ${real} not null,
  verified text,
  signer text,
  key text,
  signature_fault text,
  alleged_signer text,
  evidence text not null,
  rule ${key} not null,
  layer text,
  action text not null,
  dry_run ${integer} not null,
  done ${key} not null,
  limited ${integer} not null,
  forged text not null
);
create unique index sighting_profiles_by_hash on sighting_profiles (hash);
`

const indexes = `
create unique index sightings_by_id on sightings (id);
create index sightings_by_app on sightings ((number >> 16), app);
create index sightings_by_host on sightings ((number >> 16), host);
create index sightings_by_address on sightings ((number >> 16), address_key);
create index sightings_by_profile on sightings ((number >> 16), profile);
create index sighting_profiles_by_use on sighting_profiles (used_at_ms);
create index sighting_profiles_by_ja4 on sighting_profiles (ja4);
create index sighting_profiles_by_ja4h on sighting_profiles (ja4h);
create index sighting_profiles_by_agent on sighting_profiles (agent);
insert into sighting_parts (number, last_sighting, first_seen_ms, last_seen_ms)
  select number >> 16, max(number), min(seen_at_ms), max(seen_at_ms) from sightings group by number >> 16;
`

/** In the order of their numbers. Damaged documents are left out. */
async function carryOver(db: Kysely<Tables>): Promise<void> {
  const profiles = new Map<string, number>()
  let number = 0
  for (let last = 0; ; ) {
    const { rows } = await sql<{
      number: number
      document: string
    }>`select number, document from sightings_before
      where number > ${last} order by number limit ${ROWS}`.execute(db)
    if (rows.length === 0) return
    last = rows.at(-1)!.number
    const found: object[] = []
    for (const { document } of rows) {
      const sighting = sightingIn(document)
      if (sighting === null) continue
      const ja4h = ja4hParts(sighting.ja4h)
      const common = { ...valuesOf(sighting, COMMON), ja4h: ja4h.common }
      const text = JSON.stringify(common)
      if (profiles.size === PROFILES_MAX) profiles.clear()
      const profile =
        profiles.get(text) ?? (await addProfile(db, { ...common, hash: `carried ${number + 1}` }))
      profiles.set(text, profile)
      number++
      found.push({
        number,
        ...valuesOf(sighting, OWN),
        profile,
        address_key: addressKey(sighting.address),
        ja4h_cookies: ja4h.cookies,
      })
    }
    for (const part of parts(found))
      await db
        .insertInto('sightings')
        .values(part as never)
        .execute()
  }
}

/** A profile of its own, even if later Sightings have the same in common. */
async function addProfile(db: Kysely<Tables>, columns: object): Promise<number> {
  const row = { ...columns, used_at_ms: Date.now() } as never
  return (await db.insertInto('sighting_profiles').values(row).returning('id').executeTakeFirstOrThrow()).id
}

/** The end of a JA4H is a hash of cookies, which are those of one person. */
function ja4hParts(ja4h: string | null) {
  const end = ja4h?.lastIndexOf('_') ?? -1
  if (ja4h === null || end === -1 || ja4h.endsWith('_000000000000')) return { common: ja4h, cookies: null }
  return { common: ja4h.slice(0, end), cookies: ja4h.slice(end + 1) }
}

function sightingIn(document: string): Sighting | null {
  const sighting = parseSighting(document)
  return typeof sighting === 'string' ? null : sighting
}

function valuesOf(sighting: Sighting, members: readonly (keyof Sighting)[]): object {
  return Object.fromEntries(
    members.map((name) => {
      const value = sighting[name]
      const column = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      if (typeof value === 'boolean') return [column, Number(value)]
      return [column, typeof value === 'object' && value !== null ? JSON.stringify(value) : value]
    }),
  )
}

/** Takes a few milliseconds. */
const ROWS = 1_024
const PROFILES_MAX = 50_000
const OWN = [
  ...(['id', 'seenAtMs', 'app', 'host', 'address', 'method', 'path', 'snapshot'] as const),
  ...(['requestKind', 'headerOrder', 'target', 'campaign'] as const),
]
const COMMON = [
  ...(['proxy', 'userAgent', 'ja4', 'ja4Source', 'noHello', 'stable', 'ja4s', 'ja4x'] as const),
  ...(['http2', 'program', 'verdict', 'agent', 'category', 'purposes', 'software', 'confidence'] as const),
  ...(['nameConfidence', 'verified', 'signer', 'key', 'signatureFault', 'allegedSigner'] as const),
  ...(['evidence', 'rule', 'layer', 'action', 'dryRun', 'done', 'limited', 'forged'] as const),
]
