import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { openApiDocument } from '../../src/manage/api/openapi.ts'
import type { AnyOperation } from '../../src/manage/http/operation.ts'
import { V1 } from '../../src/manage/api/operations.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { Store } from '../../src/store/store.ts'
import type { PaymentDraft } from '../../src/store/work/payments.ts'
import { EventLog } from '../../src/manage/events/event-log.ts'
import { seen } from '../contract/seen.ts'
import { newSigner } from '../identity/signer.ts'
import { GnapClient } from '../manage/gnap-client.ts'
import { TestManagement, type TestOptions } from '../manage/management.ts'
import { event } from '../manage/webhook-site.ts'
import { HookReceiver } from '../manage/webhook-receiver.ts'
import { freshUrl, type Owner } from '../store/databases.ts'
import type { DatabaseKind } from '../../src/store/engine/database.ts'

/** One record of every kind that the API stores, made through the API by one principal: the target of others. */
export class Estate {
  readonly manage: TestManagement
  /** The key of who made the task. */
  readonly key: string
  /** The app that everything belongs to that can belong to one; `null`: to none. */
  readonly app: string | null
  /** Who made what belongs to the app. */
  readonly #owner: Record<string, string>
  /** Of each path that names something, what it is to name: `/tasks/{task_id}` → its id. */
  readonly #names = new Map<string, string>()

  static async start(
    t: Owner,
    kind: DatabaseKind,
    options: TestOptions = {},
    app: string | null = null,
  ): Promise<Estate> {
    const manage = await TestManagement.start(t, {
      ...{ knows: true, adminKey: ADMIN_KEY, authFailuresPerMinute: 1_000_000 },
      ...{ allowPrivateWebhooks: true, allowPrivateFetches: true },
      // Nothing that is asked for here is to be slowed down; what slows has tests of its own.
      rateLimits: { freePerDay: 1_000_000, standardPerHour: 1_000_000 },
      ...options,
      storeUrl: options.storeUrl ?? (await freshUrl(kind, t)),
    })
    const apps = app === null ? '*' : [app]
    const key = await manage.key({ scopes: ['read', 'detect', 'write', 'mcp'], apps })
    const owner = app === null ? {} : { authorization: `Bearer ${await manage.key({ apps })}` }
    const estate = new Estate(manage, key, app, owner)
    await estate.#fill(await HookReceiver.start(t))
    return estate
  }

  private constructor(
    manage: TestManagement,
    key: string,
    app: string | null,
    owner: Record<string, string>,
  ) {
    this.manage = manage
    this.key = key
    this.app = app
    this.#owner = owner
  }

  /** Of an administrator of its app. */
  get authorization(): string {
    return this.#owner['authorization'] ?? `Bearer ${this.manage.adminKey}`
  }

  /** The name that this operation finds something under, by the whole of its path. Throws where nothing of its kind was made. */
  nameFor({ path, method }: AnyOperation): string {
    const base = path.replace(/\}.*$/, '}')
    const name = this.#names.get(base)
    assert.ok(name !== undefined, `${method} ${path}: the estate has nothing for ${base}`)
    return name
  }

  /** The path of an operation, of what there is. */
  pathFor(operation: AnyOperation, prefix = V1.prefix): string {
    const path = operation.path.includes('{')
      ? operation.path.replace(/\{\w+\}/, encodeURIComponent(this.nameFor(operation)))
      : operation.path
    return prefix + path
  }

  async #fill(receiver: HookReceiver): Promise<void> {
    const { manage } = this
    await manage.fillCatalogue()
    const made = async (path: string, body: unknown, member = 'id', as = this.#owner) => {
      const answered = await manage.ask('POST', path, body, as)
      assert.ok(answered.status < 300, `${path}: ${JSON.stringify(answered.body)}`)
      return answered.body[member] as string
    }
    const name = (path: string, found: string) => this.#names.set(path, found)
    name('/agents/{agent_id}', 'gptbot')
    name(
      '/apps/{app_id}',
      await made('/v1/apps', { id: this.app ?? 'kept', hosts: ['kept.example'] }, 'id', {}),
    )
    name('/keys/{id}', await made('/v1/keys', { name: 'kept', access: 'read' }))
    name('/clients/{client_id}', await made('/v1/clients', CLIENT, 'client_id'))
    name(
      '/trust/{id}',
      await made('/v1/trust', { agent_id: 'https://agent.example/id.json', scopes: ['read'] }),
    )
    name('/users/{id}', await made('/v1/users', USER))
    const webhook = await made('/v1/webhooks', { url: receiver.url, events: ['new_agent'] })
    name('/webhooks/{id}', webhook)
    const delivery = await made(`/v1/webhooks/${webhook}/test`, undefined)
    name('/deliveries/{id}', delivery)
    // Nothing of it goes on by itself afterwards.
    while ((await manage.ask('GET', `/v1/deliveries/${delivery}`)).body.status === 'pending') await wait(5)
    name('/grants/{id}', await this.#grant())
    const own = { authorization: `Bearer ${this.key}` }
    const task = await manage.ask('POST', '/v1/tasks/create', TASK, own)
    assert.equal(task.status, 200, JSON.stringify(task.body))
    name('/tasks/{task_id}', task.body.task_id)
    const submitted = await manage.ask(
      'POST',
      '/v1/signatures/submit',
      SUBMISSION,
      this.app === null ? own : {},
    )
    assert.equal(submitted.status, 200, JSON.stringify(submitted.body))
    name('/submissions/{id}', submitted.body.submissions[0].id)
    const put = await manage.ask('PUT', '/v1/policy', { rules: [] }, { 'if-match': '*' })
    name('/policy/versions/{version}', String(put.body.version))
    const ofApp = await manage.ask(
      'PUT',
      `/v1/apps/${this.app ?? 'kept'}/policy`,
      { rules: [] },
      { 'if-match': '*' },
    )
    assert.equal(ofApp.status, 200, JSON.stringify(ofApp.body))
    await this.#events()
    await manage.take(
      [1, 2, 3].map((number) => seen(number, { ...SEEN, ...this.#ofApp(), seenAtMs: Date.now() })),
    )
    name('/requests/{id}', (await manage.ask('GET', '/v1/requests')).body.requests[0].id)
  }

  #ofApp(): { readonly app?: string } {
    return this.app === null ? {} : { app: this.app }
  }

  async #grant(): Promise<string> {
    const client = new GnapClient(this.manage.url, newSigner())
    const { body } = await client.grant(['read'], {
      client: { key: client.key, display: { name: 'A robot' } },
      interact: { start: ['redirect'] },
    })
    return body.continue.uri.split('/').at(-1)
  }

  async #events(): Promise<void> {
    const store = await Store.open(this.manage.storeUrl)
    try {
      const given = event(this.#ofApp())
      await store.transaction((queries) => new EventLog(store).add([given], queries))
      this.#names.set('/events/{id}', given.id)
      const threat = event({
        ...{ type: 'threat_detected', ...this.#ofApp() },
        data: JSON.stringify({ reason: 'forged_headers', count: 1, request: { address: '192.0.2.7' } }),
      })
      await store.transaction((queries) => new EventLog(store).add([threat], queries))
      const filed = await store.cases.list({ page: 1, limit: 1 }, EVERY_CASE)
      this.#names.set('/cases/{id}', filed.items[0]!.id)
      await store.campaigns.put([CAMPAIGN])
      this.#names.set('/campaigns/{id}', CAMPAIGN.id)
      const paid = { ...PAYMENT, ...this.#ofApp(), createdAtMs: Date.now() }
      assert.equal(await store.payments.reserve(paid, null), 'reserved')
      await store.payments.settled(paid.id, { transaction: '0x3', settledAtMs: Date.now(), passUntilMs: 0 })
      this.#names.set('/payments/{id}', paid.id)
    } finally {
      await store.close()
    }
  }
}

/** What the document shows of an operation, which it takes. `null`: it has no body. */
export function bodyFor(operation: AnyOperation): Record<string, unknown> | null {
  const own = BODIES[operation.id]
  if (own !== undefined) return own
  const documented = DOCUMENT.paths[operation.path]?.[operation.method.toLowerCase()]
  const shown = documented?.requestBody?.content['application/json']?.example
  return (shown ?? null) as Record<string, unknown> | null
}

/** All rows of all tables but those that tell of the requests themselves, and what of them goes on by itself. */
export async function tablesOf(storeUrl: string): Promise<Readonly<Record<string, string>>> {
  const database = await openDatabase(storeUrl, null, async () => undefined)
  try {
    const tables = await database.db.introspection.getTables()
    const found: Record<string, string> = {}
    for (const { name } of tables) {
      if (OF_REQUESTS.has(name) || name.startsWith('sqlite_') || name.startsWith('kysely_')) continue
      const rows = await database.db
        .selectFrom(name as 'api_keys')
        .selectAll()
        .execute()
      found[name] = rows
        // An export changes nothing, and is noted.
        .filter((row) => (row as { action?: unknown }).action?.toString().startsWith('export') !== true)
        // The leader writes it once, soon after its start.
        .filter((row) => (row as { name?: unknown }).name !== 'campaigns.salt')
        .map((row) => JSON.stringify({ ...row, last_used_at_ms: null }))
        .toSorted()
        .join('\n')
    }
    return found
  } finally {
    await database.close()
  }
}

/** Of two states of the tables, those that differ. */
export function changedIn(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): readonly string[] {
  return Object.keys(after).filter((name) => after[name] !== before[name])
}

export const ADMIN_KEY = 'the administrator of the estate'
const PAYMENT: PaymentDraft = {
  ...{
    id: 'pay_kept',
    identity: 'kept',
    scheme: 'x402',
    app: 'kept',
    rule: 'paid',
    account: '0x1',
    agent: null,
  },
  ...{ key: null, payer: '0x1', host: 'kept.example', path: '/', amount: 10_000, currency: 'USD' },
  ...{ network: 'eip155:1', asset: '0x2', purposes: [], license: null, decisionId: 'd' },
  ...{ createdAtMs: 0, leaseUntilMs: 0, passUntilMs: 0 },
}
const CLIENT = { name: 'kept', grant_types: ['client_credentials'], scopes: ['read'] }
const USER = { email: 'kept@example.com', password: 'a phrase of some words', scopes: ['read'] }
const TASK = { type: 'detect', items: [{ user_agent: 'curl/8.17.0' }] }
const SUBMISSION = {
  ...{ fingerprint: 't13d1312h2_f57a46bbacb6_ab7e3b40a677', type: 'ja4', agent_name: 'Kept Agent' },
  ...{ category: 'crawler', notes: 'kept' },
}
const EVERY_CASE = { scope: '*', status: null, reasons: null, sinceMs: null, untilMs: null } as const
const SEEN = { verdict: 'agent', agent: 'gptbot', category: 'crawler', confidence: 0.9 } as const
/** Where what the document shows is not taken as it stands. */
const BODIES: Readonly<Record<string, Record<string, unknown>>> = {
  reviewSubmission: { decision: 'reject' },
  createWebhook: { url: 'http://127.0.0.1:9/', events: ['new_agent'] },
  updateWebhook: { description: 'changed' },
  replayWebhook: { since: '2020-01-01T00:00:00.000Z' },
  updateSettings: { 'log.level': 'info' },
  decideGrant: { decision: 'deny' },
}
/** Written whatever the answer is, or by clocks. */
const OF_REQUESTS = new Set([
  ...[
    'rate_limits',
    'idempotency',
    'audit',
    'deliveries',
    'managers',
    'replays',
    'traffic',
    'detections',
    'oauth_keys',
    'campaigns',
    'campaign_signs',
  ],
])
const RECORD = {
  ...{ id: 'cmp_estate', salt: 1, cohort: 1, program: 1, hostHash: 1, requests: 100, members: [[1, 1]] },
  ...{ foundAtMs: 1, lastSeenMs: 1, host: 'app.example.test', software: 'chrome', ja4: null },
  ...{ userAgent: null, stable: null, http2: null },
  signs: {
    ...{ addresses: 100, people: 0, pagesMin: 2, coverage: { targets: 100, distinct: 100 } },
    variation: null,
  },
}
const CAMPAIGN = { id: RECORD.id, foundAtMs: 1, lastSeenMs: Date.now(), document: JSON.stringify(RECORD) }
const DOCUMENT = openApiDocument(V1, 'https://gate.example')
