import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { StartupConfig } from '../config/config.ts'
import { Fault } from '../shared/fault.ts'
import { RangesStore, rangesFolder } from '../identity/address/ranges-store.ts'
import { createLogTo, silentLog } from '../shared/log.ts'
import type { App } from '../apps/app.ts'
import { AppCopy } from '../manage/publish/app-copy.ts'
import { AppKeeper } from '../manage/publish/app-keeper.ts'
import { AcceptedSignatures } from '../manage/publish/accepted-signatures.ts'
import { FeedStore, feedFolder } from '../manage/publish/feed-store.ts'
import { DEFAULT_POLICY } from '../manage/publish/policy-keeper.ts'
import { FLEET_FOLDER, withoutUser } from '../plane/fleet-proxy.ts'
import { JetStreamProxyBus } from '../plane/jetstream/jetstream-bus.ts'
import { PART_FILE } from '../plane/app/app-follower.ts'
import { composed } from '../plane/app/app-part.ts'
import { readPartFile } from '../plane/app/part-file.ts'
import { PARTS_FOLDER } from '../plane/jetstream/app-line.ts'
import { makeSnapshot, type SnapshotDocument } from '../plane/snapshot.ts'
import { type AppPolicyText, checkPolicies } from '../plane/snapshot-policies.ts'
import { NEWEST_FILE } from '../plane/snapshot-follower.ts'
import { documentIn, packSnapshot, unpackSnapshot } from '../plane/snapshot-package.ts'
import { sqliteFile } from '../store/engine/open-database.ts'
import { Store } from '../store/store.ts'
import { feedSettings } from './signatures/feed-settings.ts'
import { PolicyPart, withFetched } from './live-parts.ts'
import { compiled } from './signatures/signature-compiler.ts'
import { busSettings } from './startup.ts'
import { storePlace } from './store-place.ts'

/** The newest Snapshot on NATS, packed. Throws a Fault if it does not exist. */
export async function publishedSnapshot(config: StartupConfig): Promise<Buffer> {
  const settings = busSettings(config)
  if (settings.urls.length === 0)
    throw new Fault('BUS_UNKNOWN', 'bus.url is missing: set it, or export --from store or --from files')
  const place = settings.urls.map(withoutUser).join(', ')
  let why: string | null = null
  // A configuration with PostgreSQL belongs to a manager, so its NATS login does too.
  const isOfManager = config.store.url?.startsWith('postgres') === true
  const { app } = config.proxy
  const as = isOfManager ? { role: 'manage' as const } : { app }
  const log = createLogTo('warn', { write: (line) => (why = reasonIn(line) ?? why) })
  return inTemporaryFolder(async (folder) => {
    const bus = new JetStreamProxyBus(settings, 'snapshot-export', { folder, spreadMs: 0, ...as }, log)
    try {
      const { promise: first, resolve } = Promise.withResolvers<SnapshotDocument>()
      bus.onSnapshot(resolve)
      const found = await Promise.race([first, wait(PUBLISHED_MS, null, { ref: false })])
      if (found !== null) return await packSnapshot(found)
      const what = bus.connection.isUp
        ? `there is no Snapshot on ${place}${why === null ? '' : ` (${why})`}: start a manager with the same bus.name first`
        : `${place} is unreachable${why === null ? '' : ` (${why})`}: check bus.url and its credentials`
      throw new Fault('SNAPSHOT_MISSING', `${what}; or export --from disk, store or files`)
    } finally {
      await bus.closed()
    }
  })
}

/**
 * The copy in the data folder of a manager or a proxy, of a proxy of one app with what it keeps of this app. Throws a
 * Fault if it does not exist.
 */
export async function keptSnapshot({ data, proxy }: Pick<StartupConfig, 'data' | 'proxy'>): Promise<Buffer> {
  const folder = join(data.dir, FLEET_FOLDER)
  const { app } = proxy
  const ofApp = app === null ? null : await readPartFile(join(folder, PARTS_FOLDER, PART_FILE), app)
  const path = join(folder, ...(ofApp === null ? [] : [PARTS_FOLDER]), NEWEST_FILE)
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    const fix = 'name the data folder of a manager or proxy that has had one with --data'
    throw new Fault('SNAPSHOT_MISSING', `${path} cannot be read (${error.code}): ${fix}`, { cause: error })
  })
  await documentIn(bytes)
  if (ofApp === null) return bytes
  const { head, part } = ofApp
  return inTemporaryFolder(async (temporary) =>
    packSnapshot(composed(await unpackSnapshot(bytes, temporary, true), head, part)),
  )
}

/** Makes a new Snapshot and calls `use` while its index file exists. Throws a Fault with all problems. */
export function madeSnapshot<Result>(
  config: StartupConfig,
  isFromStore: boolean,
  use: (document: SnapshotDocument) => Promise<Result>,
): Promise<Result> {
  // Not the data folder, where a running gateway keeps its own index.
  return inTemporaryFolder(async (folder) => {
    const found = isFromStore ? await stored(config, folder) : { ...NOTHING_STORED, apps: config.apps }
    const { policy, accepted, apps, appPolicies } = found
    const ofFile = new PolicyPart(config.policy.file, {}, () => undefined)
    const chosen = config.policy.file === null ? (policy ?? DEFAULT_POLICY.document) : await ofFile.load()
    const own = { paths: config.signatures, weightsFile: config.weights.file }
    const silent = silentLog()
    const feeds = new FeedStore(feedFolder(config.data.dir), feedSettings(config), silent)
    const ranges =
      config.identity.rangesRefreshMs === null
        ? null
        : new RangesStore(rangesFolder(config.data.dir), silent, Date.now)
    const sources = { ...(await withFetched(own, await feeds.load(), ranges)), accepted }
    const { set } = await compiled({ sources, folder, newest: null, copies: [] })
    await checkPolicies({ policy: chosen, appPolicies }, null)
    return use(makeSnapshot(MADE_NUMBER, chosen, Date.now(), set, { apps, appPolicies }))
  })
}

/** What the API has changed, with the apps of the settings. */
interface Stored {
  /** Of the organisation; `null`: none was set. */
  readonly policy: unknown
  readonly apps: readonly App[]
  readonly appPolicies: readonly AppPolicyText[]
  /** Signatures. */
  readonly accepted: string
}

/** `folder`: for copies that are not kept. */
async function stored(config: StartupConfig, folder: string): Promise<Stored> {
  const { storeUrl, storeLogin } = storePlace(config)
  if (sqliteFile(storeUrl) === ':memory:')
    throw new Fault('STORE_UNAVAILABLE', 'store.url is a database in memory: export --from files instead')
  const store = await Store.open(storeUrl, storeLogin)
  try {
    const newest = await store.policies.newest()
    const record = newest === null ? null : await store.policies.byVersion(newest.version)
    const accepted = new AcceptedSignatures(silentLog())
    await accepted.attach(store)
    return {
      policy: record === null ? null : JSON.parse(record.document),
      apps: await appsIn(store, config, folder),
      appPolicies: await appPoliciesIn(store),
      accepted: await accepted.load(),
    }
  } finally {
    await store.close()
  }
}

/** The same apps as a manager has. */
async function appsIn(store: Store, config: StartupConfig, folder: string): Promise<readonly App[]> {
  let inForce = config.apps
  const keeper = new AppKeeper({
    configured: config.apps,
    copy: new AppCopy(join(folder, 'apps.json')),
    log: silentLog(),
    use: (apps) => (inForce = apps),
  })
  await keeper.open(store)
  await keeper.current() // rejects if the database failed meanwhile
  return inForce
}

async function appPoliciesIn({ policies }: Store): Promise<readonly AppPolicyText[]> {
  const found: AppPolicyText[] = []
  for (const { app, version } of await policies.newestOfApps()) {
    const record = await policies.of(app).byVersion(version)
    if (record !== null) found.push({ app, document: record.document })
  }
  return found
}

async function inTemporaryFolder<Result>(work: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-snapshot-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function reasonIn(line: string): string | null {
  const { error } = JSON.parse(line) as { error?: { message?: string } }
  return error?.message ?? null
}

const NOTHING_STORED = { policy: null, accepted: '', appPolicies: [] }
/** Snapshots of managers have the time of day in milliseconds, so they win. */
const MADE_NUMBER = 1
/** Enough to connect, to request and to read 40 MB. */
const PUBLISHED_MS = 15_000
