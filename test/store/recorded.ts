import { readFileSync, writeFileSync } from 'node:fs'
import { sql } from 'kysely'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { MIGRATIONS, migrate } from '../../src/store/engine/migrations.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { UNTRIED } from '../../src/store/events/webhooks.ts'
import type { OAuthClient } from '../../src/store/people/oauth-clients.ts'
import type { GnapTokenRecord } from '../../src/store/people/gnap-tokens.ts'
import type { Feedback } from '../../src/store/catalogue/feedback.ts'
import type { SubmissionRecord } from '../../src/store/catalogue/submissions.ts'
import { sealed } from '../../src/store/engine/sealed.ts'
import { Store } from '../../src/store/store.ts'
import { signatureOf, softwareOf } from '../contract/catalogue.ts'
import { ingestInto, seen } from '../contract/seen.ts'
import { type Owner, urlWithoutTables } from './databases.ts'
import { fileOf } from './migration-text.ts'
import { entry, newKey } from './samples.ts'

/**
 * Databases as a version has left them: the rows (the same for both engines) and what the store read of them. The
 * tables are those of test/store/migrations.KIND.sql. `node test/store/recorded.ts` records the newest migration:
 * once, when it is released. A record never changes after that.
 */
export async function openRecorded(name: string, kind: DatabaseKind, t: Owner): Promise<string> {
  const url = await urlWithoutTables(kind, t)
  const { db, close } = await openDatabase(url, null, async () => undefined)
  await sql
    .raw(
      `create table migrations (name text primary key, at_ms ${kind === 'sqlite' ? 'integer' : 'bigint'} not null)`,
    )
    .execute(db)
  for (const statement of [...tablesUntil(name, kind), ...rowsOf(name)]) await sql.raw(statement).execute(db)
  if (kind === 'postgres')
    for (const table of ['events', 'sightings'])
      await sql
        .raw(
          `select setval(pg_get_serial_sequence('${table}', 'number'), (select max(number) from ${table}))`,
        )
        .execute(db)
  await close()
  return url
}

/** One record of each kind, as the management plane reads it. */
export async function readBack(store: Store): Promise<Readonly<Record<string, unknown>>> {
  const first = { page: 1, limit: 10 }
  const values = {
    key: await store.keys.byHash('hash 1'),
    audit: await store.audit.list(first),
    setting: await store.settings.get('limits.free_per_day'),
    policy: await store.policies.byVersion(1),
    software: await store.catalogue.softwareNamed('Acme Bot'),
    signatures: await store.catalogue.signaturesOf('ja4', signatureOf({}).value),
    submission: await store.submissions.byId('sub_1'),
    sightings: await store.sightings.newest(null, 5),
    rollups: await store.rollups.rows(),
    event: await store.events.byId('evt_1', '*'),
    webhook: await store.webhooks.byId('whk_1'),
    secrets: await store.webhooks.secrets(['whk_1'], 0),
    pending: [...(await store.deliveries.pending(['whk_1']))],
    task: await store.tasks.byId('tsk_1'),
    results: await store.tasks.results('tsk_1', 0, 10),
    user: await store.users.byEmail('admin@example.com'),
    recoveryCodes: await store.users.recoveryCodes('usr_1'),
    passkeys: await store.passkeys.ofUser('usr_1'),
    trust: await store.trust.list(first, '*'),
    client: await store.oauthClients.byId('cli_1'),
    record: await store.oauthRecords.byId('rec_1'),
    signingKeys: await store.oauthKeys.all(),
    denials: await store.oauthDenials.since(0, 2),
    token: await store.gnapTokens.byHash('token hash'),
  }
  return JSON.parse(JSON.stringify(values))
}

export function recordedReads(name: string): Readonly<Record<string, unknown>> {
  return JSON.parse(readFileSync(recordOf(name, 'json'), 'utf8'))
}

/** The number of rows that each table had. */
export function recordedCounts(name: string): ReadonlyMap<string, number> {
  const tables = rowsOf(name).map((statement) => /^\s*insert into (\w+)/.exec(statement)![1]!)
  return new Map([...Map.groupBy(tables, (table) => table)].map(([table, rows]) => [table, rows.length]))
}

async function fill(store: Store): Promise<void> {
  await store.keys.add(newKey(1))
  await store.settings.put('limits.free_per_day', 5, 0, AT_MS)
  await store.transaction(async (queries) => {
    await store.audit.add(entry(1), queries)
    await store.policies.add(
      {
        version: 1,
        hash: 'a hash',
        author: 'key_1',
        restoredVersion: null,
        createdAtMs: AT_MS,
        comment: 'a reason',
        document: '{"rules":[]}',
      },
      10,
      queries,
    )
    await store.catalogue.addSoftware(softwareOf({ id: 'acme-bot', name: 'Acme Bot' }), AT_MS, queries)
    await store.catalogue.addSignature(signatureOf({ softwareId: 'acme-bot' }), queries)
    await store.submissions.add([SUBMISSION], queries)
    await store.trials.open([{ type: 'ja4', value: 'a value' }], AT_MS, queries)
    await store.feedback.put(FEEDBACK, queries)
    await store.users.add(
      {
        id: 'usr_1',
        email: 'admin@example.com',
        password: 'hash',
        apps: '*',
        scopes: ['admin'],
        createdAtMs: AT_MS,
      },
      queries,
    )
    await store.users.setCodes('usr_1', sealed('a seed', 'a word'), ['hash 1', 'hash 2'], queries)
    await store.passkeys.add(
      {
        id: 'AAAA',
        userId: 'usr_1',
        name: 'phone',
        publicKey: 'BBBB',
        counter: 1,
        createdAtMs: AT_MS,
        usedAtMs: null,
      },
      queries,
    )
    await store.oauthClients.add(CLIENT, queries)
    const webhook = {
      id: 'whk_1',
      url: 'https://example.com/hook',
      events: ['new_agent'],
      description: "an admin's",
    }
    await store.webhooks.add(
      {
        ...webhook,
        isEnabled: true,
        createdAtMs: AT_MS,
        updatedAtMs: AT_MS,
        apps: '*',
        filters: { min_confidence: 0.5 },
        health: UNTRIED,
      },
      { id: 'sec_1', sealed: sealed('a secret', 'a word'), createdAtMs: AT_MS },
      queries,
    )
    const about = { agent: 'acme-bot', category: 'crawler', severity: null, confidence: 0.9, app: null }
    const [event] = await store.events.add(
      [{ id: 'evt_1', type: 'new_agent', atMs: AT_MS, subject: 'agent acme-bot', ...about, data: '{"a":1}' }],
      queries,
    )
    const delivery = {
      id: 'dlv_1',
      webhookId: 'whk_1',
      eventNumber: event!.number,
      lane: 'agent acme-bot',
      nextAtMs: AT_MS,
    }
    await store.deliveries.add([delivery], AT_MS, queries)
    await store.gnapTokens.add(TOKEN, { hash: 'token hash', manageHash: 'manage hash' }, queries)
  })
  await store.trust.add({
    id: 'trs_1',
    kind: 'agent',
    subject: 'https://agent.example/',
    name: 'Acme',
    apps: '*',
    scopes: ['read'],
    plan: 'standard',
    document: { keys: [] },
    createdAtMs: AT_MS,
  })
  await store.oauthRecords.put({
    id: 'rec_1',
    kind: 'Grant',
    sealed: sealed('a grant', 'a word'),
    grantId: 'g',
    uid: null,
    userCode: null,
    clientId: 'cli_1',
    personId: 'usr_1',
    expiresAtMs: AT_MS,
  })
  const signing = { number: 1, kid: 'k1', publicJwk: { kty: 'EC' }, createdAtMs: AT_MS, signsFromMs: AT_MS }
  await store.oauthKeys.add({ ...signing, sealed: sealed('a key', 'a word') })
  await store.oauthDenials.add({ kind: 'grant', id: 'g', atMs: 1, expiresAtMs: 3 })
  await store.replays.isFirst('a nonce', AT_MS)
  await store.idempotency.begin('key_1', 'a key', 'a hash', AT_MS)
  await store.tasks.addDone(
    {
      id: 'tsk_1',
      apps: '*',
      principal: 'key_1',
      type: 'detect',
      atMs: AT_MS,
      chunks: [{ number: 0, from: 0, items: ['a'] }],
    },
    { number: 0, results: ['b'], failed: 0 },
    AT_MS + 1,
  )
  await ingestInto(store).ingest.take([seen(0), seen(1, { userAgent: "it's \\ 'quoted'" })])
}

function recordOf(name: string, end: string): URL {
  return new URL(`./recorded/${name}.${end}`, import.meta.url)
}

function rowsOf(name: string): readonly string[] {
  return readFileSync(recordOf(name, 'sql'), 'utf8')
    .trimEnd()
    .split(/;$/m)
    .filter((statement) => statement.trim() !== '')
}

/** The statements of the migrations up to this one. */
function tablesUntil(name: string, kind: DatabaseKind): readonly string[] {
  const sections = readFileSync(fileOf(kind), 'utf8').split(/^-- /m)
  const last = sections.findIndex((section) => section.startsWith(`${name}\n`))
  return sections
    .slice(1, last + 1)
    .flatMap((section) => section.slice(section.indexOf('\n')).split(/;$/m))
    .filter((statement) => statement.trim() !== '')
}

async function record(): Promise<void> {
  const teardowns: (() => unknown)[] = []
  const url = await urlWithoutTables('sqlite', { teardown: (work) => teardowns.unshift(work) })
  const store = await Store.open(url)
  await fill(store)
  const name = [...MIGRATIONS.keys()].at(-1)!
  writeFileSync(recordOf(name, 'json'), `${JSON.stringify(await readBack(store), null, 2)}\n`)
  await store.close()
  const { db, close } = await openDatabase(url, null, migrate)
  // Parents before children.
  const tables = await sql<{ name: string }>`select name from sqlite_schema where type = 'table'
    and name not like 'sqlite_%' order by rowid`.execute(db)
  const lines: string[] = []
  for (const { name: table } of tables.rows) {
    const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(table)}`.execute(db)
    for (const row of rows) {
      const columns = Object.keys(row).join(', ')
      lines.push(`insert into ${table} (${columns}) values (${Object.values(row).map(literal).join(', ')});`)
    }
  }
  writeFileSync(recordOf(name, 'sql'), `${lines.join('\n')}\n`)
  await close()
  for (const work of teardowns) await work()
}

function literal(value: unknown): string {
  if (value === null || typeof value === 'number') return String(value)
  return `'${String(value).replaceAll("'", "''")}'`
}

const AT_MS = 1_800_000_000_000
const SUBMISSION: SubmissionRecord = {
  id: 'sub_1',
  createdAtMs: AT_MS,
  principal: 'key_1',
  type: 'ja4',
  value: 'a value',
  agentName: 'Ünï',
  softwareId: 'acme-bot',
  category: 'crawler',
  purposes: [],
  userAgent: null,
  notes: 'a\n"b"',
  status: 'pending',
  reasons: [{ code: 'new', detail: 'ä' }],
  duplicateOf: null,
  madeSoftware: false,
  decidedAtMs: null,
  decidedBy: null,
  rolledBackAtMs: null,
}
const FEEDBACK: Feedback = {
  id: 'fbk_1',
  decisionId: 'one',
  atMs: AT_MS,
  principal: 'key_1',
  told: 'agent',
  toldSoftwareId: null,
  verdict: 'human',
  verdictSoftwareId: null,
  fingerprints: [{ type: 'ja4', value: 'a value' }],
}
const CLIENT: OAuthClient = {
  id: 'cli_1',
  name: 'client',
  secretHash: 'hash',
  authMethod: 'client_secret_basic',
  plan: 'standard',
  grantTypes: ['client_credentials'],
  redirectUris: [],
  apps: '*',
  scopes: ['read'],
  jwks: null,
  origin: 'api',
  createdAtMs: AT_MS,
}
const TOKEN: GnapTokenRecord = {
  id: 'gtk_1',
  thumbprint: 'tp',
  jwk: { kty: 'EC' },
  name: 'robot',
  label: null,
  scopes: ['read'],
  isBearer: false,
  isApproved: true,
  approved: { by: 'usr_1', atMs: AT_MS },
  expiresAtMs: AT_MS,
  endsAtMs: AT_MS,
  revokedAtMs: null,
}

if (import.meta.main) await record()
