import { loadConfig } from '../../config/config.ts'
import { Fault } from '../../shared/fault.ts'
import { silentLog } from '../../shared/log.ts'
import type { FeedSettings } from '../../manage/publish/feed-puller.ts'
import { FeedStore, feedFolder } from '../../manage/publish/feed-store.ts'
import { type FeedFacts, FeedFault } from '../../plane/feed.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { CommandAction, Arguments, ExitCode } from '../../terminal/command.ts'
import { CONFIG_OPTIONS, configFlags } from '../../terminal/config-options.ts'
import { feedCalled, feedSettings } from '../../runtime/signatures/feed-settings.ts'
import type { Io } from '../../terminal/io.ts'
import { renderTable } from '../../terminal/table.ts'

export const listFeeds: CommandAction = {
  name: 'feeds',
  summary: 'Show which versions of feeds are stored, and which are in use',
  description: [
    'Takes the flags of "up". Verifies each version again; an invalid one is shown with the reason and is not used.',
  ],
  operands: [],
  options: [...CONFIG_OPTIONS, { name: 'json', description: 'One JSON object a line, instead of a table' }],
  examples: [
    { command: 'signatures feeds --config gatehouse.yaml', description: 'The feeds of a configuration' },
  ],
  run: runListFeeds,
}

export const rollback: CommandAction = {
  name: 'rollback',
  summary: 'Go back to an older version of a feed and stay there',
  description: [
    'Takes the flags of "up". A running gateway with the same data folder notices the change. Newer versions are still fetched and stored, but not used until --unpin.',
  ],
  operands: [{ name: 'NAME', description: 'The feed' }],
  options: [
    { name: 'to', value: 'VERSION', description: 'The version (default: the one before the one in use)' },
    { name: 'unpin', description: 'Use the newest version again' },
    ...CONFIG_OPTIONS,
  ],
  examples: [
    { command: 'signatures rollback acme --config gatehouse.yaml', description: 'Back by one version' },
    {
      command: 'signatures rollback acme --unpin --config gatehouse.yaml',
      description: 'Back to the newest version',
    },
  ],
  run: runRollback,
}

async function runListFeeds(given: Arguments, io: Io): Promise<ExitCode> {
  const { feeds, store } = open(given, io)
  store.use(await store.load())
  const kept = (await Promise.all(feeds.map((feed) => keptOf(feed, store)))).flat()
  if (given.flag('json')) {
    io.stdout.write(kept.map((each) => `${JSON.stringify(each)}\n`).join(''))
    return 0
  }
  const columns = [
    { title: 'FEED' },
    { title: 'VERSION', align: 'right' },
    { title: 'MADE' },
    { title: 'EXPIRES' },
    { title: 'STATE', flexible: true },
  ] as const
  const rows = kept.map(({ feed, version, created, expires, state, problem }) => {
    return [feed, String(version), created ?? '', expires ?? '', problem ?? state]
  })
  io.stdout.write(`${renderTable(columns, rows, io.columns).join('\n')}\n`)
  return 0
}

interface KeptFeed {
  readonly feed: string
  readonly version: number
  readonly created: string | null
  readonly expires: string | null
  readonly state: 'in use' | 'pinned' | 'kept' | 'invalid'
  readonly problem: string | null
}

async function keptOf(trust: FeedSettings, store: FeedStore): Promise<readonly KeptFeed[]> {
  const inUse = store.inUse(trust.name)
  const kept: KeptFeed[] = []
  for (const version of await store.versions(trust.name)) {
    const found = await readKept(trust, store, version)
    const isInUse = version === inUse.feed?.version
    const state = isInUse ? (inUse.pin === null ? 'in use' : 'pinned') : 'kept'
    kept.push(
      found instanceof FeedFault
        ? { ...NOTHING_KNOWN, feed: trust.name, version, problem: found.message.split('\n')[0]! }
        : {
            feed: trust.name,
            version,
            created: timeOf(found.createdMs),
            expires: timeOf(found.expiresMs),
            state,
            problem: null,
          },
    )
  }
  return kept
}

async function runRollback(given: Arguments, io: Io): Promise<ExitCode> {
  const [to, isUnpin] = [given.value('to'), given.flag('unpin')]
  if (to !== null && isUnpin) throw new Fault(USAGE, '--to and --unpin say different things; leave one out')
  if (to !== null && !/^[1-9]\d{0,15}$/.test(to))
    throw new Fault(USAGE, '--to must be the number of a version')
  const { feeds, store } = open(given, io)
  const feed = feedCalled(feeds, given.operands[0]!)
  if (isUnpin) {
    await store.setPin(feed.name, null)
    const newest = await store.newest(feed)
    const which = newest === null ? 'none is here' : `version ${newest.version} is in use`
    io.stdout.write(`${feed.name}: no longer pinned; ${which}\n`)
    return 0
  }
  const target = to === null ? await olderOf(feed, store) : await keptVersion(feed, store, Number(to))
  await store.setPin(feed.name, target.version)
  const { version, createdMs } = target
  io.stdout.write(
    `${feed.name}: version ${version}, made ${timeOf(createdMs)}, is in use, and none that is newer, until --unpin\n`,
  )
  return 0
}

/** The next valid version below the one in use. */
async function olderOf(feed: FeedSettings, store: FeedStore): Promise<FeedFacts> {
  store.use(await store.load())
  const inUse = store.inUse(feed.name).feed?.version ?? Number.POSITIVE_INFINITY
  for (const version of await store.versions(feed.name)) {
    if (version >= inUse) continue
    const found = await readKept(feed, store, version)
    if (!(found instanceof FeedFault)) return found
  }
  throw new Fault(
    'FEED_VERSION_UNKNOWN',
    `there is no older version of ${feed.name} here${await kept(feed, store)}`,
  )
}

async function keptVersion(feed: FeedSettings, store: FeedStore, version: number): Promise<FeedFacts> {
  if ((await store.versions(feed.name)).includes(version)) return store.read(feed, version)
  throw new Fault(
    'FEED_VERSION_UNKNOWN',
    `version ${version} of ${feed.name} is not here${await kept(feed, store)}`,
  )
}

async function kept(feed: FeedSettings, store: FeedStore): Promise<string> {
  const versions = await store.versions(feed.name)
  return versions.length === 0 ? '; none is' : `; kept: ${versions.join(', ')}`
}

async function readKept(
  feed: FeedSettings,
  store: FeedStore,
  version: number,
): Promise<FeedFacts | FeedFault> {
  try {
    return await store.read(feed, version)
  } catch (error) {
    if (error instanceof FeedFault) return error
    throw error
  }
}

function open(given: Arguments, io: Io): { feeds: readonly FeedSettings[]; store: FeedStore } {
  const { config } = loadConfig(configFlags(given), given.value('config'), io.env)
  const feeds = feedSettings(config)
  return { feeds, store: new FeedStore(feedFolder(config.data.dir), feeds, silentLog()) }
}

function timeOf(ms: number): string {
  return ms === Number.POSITIVE_INFINITY ? 'never' : new Date(ms).toISOString()
}

const NOTHING_KNOWN = { created: null, expires: null, state: 'invalid' } as const
