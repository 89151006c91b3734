import { NO_PAYMENTS } from '../../src/payment/payment-terms.ts'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { App } from '../../src/apps/app.ts'
import { catalogueRows } from '../../src/runtime/signatures/catalogue-rows.ts'
import { loadContent } from '../../src/runtime/signatures/signature-content.ts'
import { parseConfig } from '../../src/config/config.ts'
import type { Effective } from '../../src/config/reader.ts'
import type { AsnFile } from '../../src/identity/address/asn-file.ts'
import { createLogTo } from '../../src/shared/log.ts'
import type { Fleet } from '../../src/manage/api/context.ts'
import { createManageServer, FRONT_DEFAULTS, type FrontSettings } from '../../src/manage/app.ts'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { makeKey, type WantedKey } from '../../src/manage/auth/make-key.ts'
import type { ClientDocuments } from '../../src/manage/auth/oauth/client-documents.ts'
import type { People } from '../../src/manage/auth/oauth/people.ts'
import type { PasswordHasher } from '../../src/manage/auth/people/password-hash.ts'
import type { FinishedRequest } from '../../src/manage/http/front/traffic.ts'
import type { WorkerStatus } from '../../src/plane/worker-status.ts'
import { makeSignatureSet, type SignatureSet } from '../../src/plane/signature-set.ts'
import { makeSnapshot } from '../../src/plane/snapshot.ts'
import type { AppPolicyText } from '../../src/plane/snapshot-policies.ts'
import { ManagementPlane } from '../../src/manage/management-plane.ts'
import type { ManagementSettings } from '../../src/manage/management-settings.ts'
import type { MakeServer } from '../../src/manage/mcp/asker.ts'
import { PolicyCopy } from '../../src/manage/publish/policy-copy.ts'
import { type PolicyFile, PolicyKeeper } from '../../src/manage/publish/policy-keeper.ts'
import type { RateLimitSettings } from '../../src/manage/limits/rate-limits.ts'
import type { KeeperSettings } from '../../src/manage/intake/sighting-keeper.ts'
import { REASONS } from '../../src/manage/events/threats/threat.ts'
import { StoreLogin } from '../../src/store/engine/store-login.ts'
import { Store } from '../../src/store/store.ts'
import { freshUrl, type Owner } from '../store/databases.ts'
import { appKeeper, appPolicies, idleLinks } from './idle-links.ts'
import { quickHasher } from './quick-hasher.ts'

export interface TestOptions extends Partial<ManagementSettings> {
  /** It judges by the signatures that come with Gatehouse. */
  readonly knows?: boolean
  readonly rateLimits?: Partial<RateLimitSettings>
  readonly front?: Partial<FrontSettings>
  /** Whom it asks as; `null` where the database is not there yet. */
  readonly admin?: WantedKey | null
  readonly answered?: (visit: FinishedRequest) => void
  /** Instead of the one that the API puts. */
  readonly policy?: PolicyFile
  readonly workers?: readonly WorkerStatus[]
  /** Another clock. */
  readonly nowMs?: () => number
  /** The apps of its settings. */
  readonly apps?: readonly App[]
  /** What hashes passwords, unless it is to take its time. */
  readonly passwords?: PasswordHasher
  /** Who can sign in. */
  readonly people?: People | null
  readonly clientDocuments?: ClientDocuments
  /** Its proxies. */
  readonly fleet?: Fleet
  /** The list of networks of `identity.asn_file`. */
  readonly networks?: AsnFile
  /** What answers MCP. */
  readonly mcpServer?: MakeServer
  /** What it calls itself, with its port, where nothing else is said. */
  readonly host?: string
}

/** A management plane that listens, with a database of its own unless it is given one, and whoever calls it. */
export class TestManagement {
  readonly url: string
  readonly storeUrl: string
  readonly failures: Error[]
  /** The folder of data. */
  readonly folder: string
  /** The lines of the log. */
  readonly said: readonly string[]
  /** The policies that the API has put in force. */
  readonly policies: readonly unknown[]
  /** All lists of apps that were put in force. */
  readonly apps: readonly (readonly App[])[]
  /** All policies of apps, each time that one of them changed. */
  readonly appPolicies: readonly (readonly AppPolicyText[])[]
  /** How often something was to be brought to proxies. */
  nudges = 0
  /** Brings a policy, and the signatures that it knows (with those in `paths`), as a publisher does; resolves when it judges by them. */
  readonly publish: (
    policy: unknown,
    paths?: readonly string[],
    appPolicies?: readonly AppPolicyText[],
  ) => Promise<void>
  /** Takes Sightings in, as a bus brings them. */
  readonly take: (batch: unknown) => Promise<void>
  readonly #adminKey: string
  #stop: () => Promise<void> = async () => undefined
  #cutOff: () => void = () => undefined

  static async start(t: Owner, options: TestOptions = {}): Promise<TestManagement> {
    const {
      knows = false,
      front,
      answered,
      policy,
      rateLimits,
      admin = ADMIN,
      workers = [],
      nowMs,
      passwords = quickHasher(),
      people,
      clientDocuments,
      mcpServer,
      networks,
      fleet,
      apps: configuredApps = [],
      host = '127.0.0.1',
      ...given
    } = options
    const folder = await mkdtemp(join(tmpdir(), 'gatehouse-manage-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    const storeUrl = given.storeUrl ?? (await freshUrl('sqlite', t))
    const adminKey = admin === null ? '' : await keyIn(storeUrl, admin)
    const said: string[] = []
    const log = createLogTo('info', { write: (line) => said.push(line) })
    const copy = new PolicyCopy(join(folder, 'policy.json'))
    const policies: unknown[] = []
    const apps: (readonly App[])[] = []
    const keeper = appKeeper(folder, { configured: configuredApps, use: (list) => apps.push(list), log })
    const ofApps: (readonly AppPolicyText[])[] = []
    const plane = new ManagementPlane(
      {
        ...SETTINGS,
        dataFolder: folder,
        configured: configured(rateLimits),
        corsOrigins: front?.corsOrigins ?? [],
        ...given,
        storeUrl,
      },
      log,
      {
        ...idleLinks(folder),
        publisher: { nudge: () => void manage.nudges++ },
        policy:
          policy ??
          new PolicyKeeper({ upstreams: UPSTREAMS, copy, log, use: (document) => policies.push(document) }),
        apps: keeper,
        appPolicies: appPolicies(folder, {
          ...{ apps: keeper, upstreams: UPSTREAMS, log },
          use: (list) => ofApps.push(list),
        }),
        workers: () => workers,
        passwords,
        ...(nowMs === undefined ? {} : { nowMs }),
        ...(people === undefined ? {} : { people }),
        ...(clientDocuments === undefined ? {} : { clientDocuments }),
        ...(mcpServer === undefined ? {} : { mcpServer }),
        ...(fleet === undefined ? {} : { fleet }),
        ...(networks === undefined ? {} : { networks: () => networks }),
      },
    )
    const failures: Error[] = []
    const server = createManageServer(
      {
        unready: () => [],
        metrics: async () => '',
        failed: (error) => failures.push(error),
        api: plane.middleware,
        ...(answered === undefined ? {} : { answered }),
      },
      { ...FRONT_DEFAULTS, ...front },
    )
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const url = `http://127.0.0.1:${port}`
    const publish = publisherFor(t, plane, knows, () => apps.at(-1) ?? [])
    const take = (batch: unknown) => plane.take(batch)
    const facts = {
      url,
      folder,
      storeUrl,
      said,
      policies,
      apps,
      appPolicies: ofApps,
      failures,
      publish,
      take,
    }
    const manage = new TestManagement(facts, adminKey)
    await plane.start({ host, port })
    if (knows) await publish({ rules: [] })
    manage.#cutOff = () => server.closeAllConnections()
    manage.#stop = async () => {
      manage.#stop = async () => undefined
      server.close()
      server.closeAllConnections()
      await plane.close()
    }
    t.teardown(() => manage.stop())
    return manage
  }

  private constructor(facts: TestManagementFacts, adminKey: string) {
    const { url, folder, storeUrl, said, policies, apps, appPolicies, failures, publish, take } = facts
    this.url = url
    this.folder = folder
    this.storeUrl = storeUrl
    this.said = said
    this.policies = policies
    this.apps = apps
    this.appPolicies = appPolicies
    this.#adminKey = adminKey
    this.failures = failures
    this.publish = publish
    this.take = take
  }

  get adminKey(): string {
    return this.#adminKey
  }

  /** With the key of an administrator, unless `headers` has another. A `body` is sent as JSON. */
  async ask(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answered> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#adminKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
    const read = (text === '' ? null : isFile(response) ? text : JSON.parse(text)) as any
    return { status: response.status, headers: response.headers, body: read }
  }

  /** Breaks all connections. */
  cutOff(): void {
    this.#cutOff()
  }

  /** Before the test has ended. */
  stop(): Promise<void> {
    return this.#stop()
  }

  /** All agents and signatures that come with Gatehouse, in its database. */
  async fillCatalogue(): Promise<void> {
    const store = await Store.open(this.storeUrl)
    try {
      const rows = await catalogueRows({ feeds: [], paths: [] })
      await store.catalogueMerge.merge(rows, {
        hash: 'test',
        nowMs: Date.now(),
        pause: async () => undefined,
      })
    } finally {
      await store.close()
    }
  }

  /** Another key for it. */
  key(wanted: Partial<WantedKey>): Promise<string> {
    return keyIn(this.storeUrl, { ...ADMIN, ...wanted })
  }
}

type TestManagementFacts = Pick<
  TestManagement,
  | 'url'
  | 'folder'
  | 'storeUrl'
  | 'said'
  | 'policies'
  | 'apps'
  | 'appPolicies'
  | 'failures'
  | 'publish'
  | 'take'
>

export interface Answered {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  readonly body: any
}

function publisherFor(
  t: Owner,
  plane: ManagementPlane,
  knows: boolean,
  apps: () => readonly App[],
): TestManagement['publish'] {
  let number = 0
  let made: Promise<SignatureSet | null> | null = null
  return async (policy, paths, appPolicies = []) => {
    if (paths !== undefined) made = ourSignatures(t, paths)
    else if (knows) made ??= ourSignatures(t)
    await plane.use(makeSnapshot(++number, policy, Date.now(), await made, { apps: apps(), appPolicies }))
  }
}

/** Read once in each process. */
let BUILT_IN: ReturnType<typeof loadContent> | null = null

/** Those that come with Gatehouse, and others. */
async function ourSignatures(t: Owner, paths: readonly string[] = []): Promise<SignatureSet | null> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-manage-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  BUILT_IN ??= loadContent({ feeds: [], paths: [], weightsFile: null })
  const loading = paths.length === 0 ? BUILT_IN : loadContent({ feeds: [], paths, weightsFile: null })
  return makeSignatureSet(await loading, folder, null)
}

/** As somebody has who says nothing but the limits. */
function configured({ freePerDay, standardPerHour }: Partial<RateLimitSettings> = {}): readonly Effective[] {
  const env = {
    ...(freePerDay !== undefined && { GATEHOUSE_LIMITS_FREE_PER_DAY: String(freePerDay) }),
    ...(standardPerHour !== undefined && { GATEHOUSE_LIMITS_STANDARD_PER_HOUR: String(standardPerHour) }),
    GATEHOUSE_STORE_PASSWORD: 'nobody-sees-this',
  }
  return parseConfig({ flags: { upstream: ['http://127.0.0.1:3000'] }, env, file: null }).effective
}

async function keyIn(storeUrl: string, wanted: WantedKey): Promise<string> {
  const store = await Store.open(storeUrl)
  try {
    return (await makeKey(store, wanted, COMMAND_LINE, Date.now())).key
  } finally {
    await store.close()
  }
}

/** What rules may route to. */
const UPSTREAMS = ['default', 'other']
const DAY_MS = 86_400_000
export const SEEN: KeeperSettings = {
  sightingsMs: DAY_MS,
  sightingsMax: 100_000,
  bytesMax: null,
  rollups: { minutesMs: 2 * DAY_MS, hoursMs: 90 * DAY_MS, daysMs: 1825 * DAY_MS },
  observed: { addressesMin: 5, requestsMin: 5, max: 1_000 },
}
/** Of a management plane that is tried alone. */
export const SETTINGS: Omit<ManagementSettings, 'storeUrl' | 'dataFolder'> = {
  configured: configured(),
  storeLogin: new StoreLogin(null),
  traffic: null,
  publicUrl: null,
  adminKey: null,
  ja4plus: true,
  findsCampaigns: true,
  privacyKeys: [],
  payments: { terms: NO_PAYMENTS, facilitator: null, licenseServer: null, retentionMs: DAY_MS },
  hasDashboard: true,
  version: '1.2.3',
  authFailuresPerMinute: 120,
  gnap: { tokenTtlS: 600, allowsBearer: true },
  oauth: {
    accessTokenTtlS: 600,
    keyRotationMs: 90 * 86_400_000,
    registration: 'off',
    registrationToken: null,
  },
  openid: null,
  auditRetentionMs: 86_400_000,
  taskRetentionMs: 7 * 86_400_000,
  feedbackRetentionMs: null,
  events: { retentionMs: 365 * 100 * 86_400_000, rowsMax: 1_000_000 },
  sinks: { file: null, syslog: null },
  requestSinks: { parquet: null, nats: null, otlp: null, apps: [] },
  seen: SEEN,
  sightingsWaitForDisk: true,
  threats: {
    ...{ windowMs: 300_000, eventsPerMinute: 30, reasons: new Set(REASONS) },
    ...{
      anomaly: { factor: 10, requestsMin: 300 },
      robots: { file: null, upstream: null, isPublished: false },
    },
  },
  hasTls: false,
  corsOrigins: [],
  encryptionKeys: [],
  allowPrivateWebhooks: false,
  deliveries: { ca: null, retryBaseMs: 10_000, retentionMs: 86_400_000 },
  allowPrivateFetches: false,
  fetchesCards: true,
  upstreams: UPSTREAMS,
  fixedApp: null,
}

const ADMIN: WantedKey = { name: 'test', apps: '*', scopes: ['admin'], plan: 'unlimited', expiresAtMs: null }

/** An export, which is not one JSON value. */
function isFile({ headers }: Response): boolean {
  return headers.has('content-disposition')
}
