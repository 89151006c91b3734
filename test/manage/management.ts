import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadContent } from '../../src/commands/signature-content.ts'
import { createLogTo } from '../../src/log.ts'
import { createManageServer, FRONT_DEFAULTS, type FrontSettings } from '../../src/manage/app.ts'
import { COMMAND_LINE } from '../../src/manage/audit.ts'
import { makeKey, type WantedKey } from '../../src/manage/auth/make-key.ts'
import type { Visit } from '../../src/manage/front/traffic.ts'
import { ManagementPlane, type ManagementSettings } from '../../src/manage/management-plane.ts'
import { makeSignatureSet } from '../../src/plane/signature-set.ts'
import { makeSnapshot } from '../../src/plane/snapshot.ts'
import { Store } from '../../src/store/store.ts'
import { freshUrl, type Owner } from '../store/databases.ts'

export interface TestOptions extends Partial<ManagementSettings> {
  /** It judges by the signatures that come with Gatehouse. */
  readonly knows?: boolean
  readonly front?: Partial<FrontSettings>
  readonly answered?: (visit: Visit) => void
}

/** A management plane that listens, with a database of its own unless it is given one, and whoever calls it. */
export class TestManagement {
  readonly url: string
  readonly storeUrl: string
  readonly failures: Error[] = []
  readonly #adminKey: string

  /** `admin`: whom it asks as; `null` where the database is not there yet. */
  static async start(
    t: Owner,
    options: TestOptions = {},
    admin: WantedKey | null = ADMIN,
  ): Promise<TestManagement> {
    const { knows = false, front, answered, ...given } = options
    const storeUrl = given.storeUrl ?? (await freshUrl('sqlite', t))
    const adminKey = admin === null ? '' : await keyIn(storeUrl, admin)
    const plane = new ManagementPlane(
      { ...SETTINGS, ...given, storeUrl },
      createLogTo('silent', { write: () => undefined }),
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
    await plane.start({ host: '127.0.0.1', port })
    if (knows) await useOurSignatures(t, plane)
    t.teardown(async () => {
      server.close()
      server.closeAllConnections()
      await plane.close()
    })
    return new TestManagement(`http://127.0.0.1:${port}`, storeUrl, adminKey, failures)
  }

  private constructor(url: string, storeUrl: string, adminKey: string, failures: Error[]) {
    this.url = url
    this.storeUrl = storeUrl
    this.#adminKey = adminKey
    this.failures = failures
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
    const read = (text === '' ? null : JSON.parse(text)) as any
    return { status: response.status, headers: response.headers, body: read }
  }

  /** Another key for it. */
  key(wanted: Partial<WantedKey>): Promise<string> {
    return keyIn(this.storeUrl, { ...ADMIN, ...wanted })
  }
}

export interface Answered {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  readonly body: any
}

async function useOurSignatures(t: Owner, plane: ManagementPlane): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-manage-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const content = await loadContent({ feeds: [], paths: [], weightsFile: null })
  const set = await makeSignatureSet(content, folder, null)
  await plane.use(makeSnapshot(1, { rules: [] }, Date.now(), set))
}

async function keyIn(storeUrl: string, wanted: WantedKey): Promise<string> {
  const store = await Store.open(storeUrl)
  try {
    return (await makeKey(store, wanted, COMMAND_LINE, Date.now())).key
  } finally {
    await store.close()
  }
}

const SETTINGS: Omit<ManagementSettings, 'storeUrl'> = {
  storePassword: null,
  publicUrl: null,
  adminKey: null,
  authFailuresPerMinute: 120,
  auditRetentionMs: 86_400_000,
  rateLimits: { freePerDay: 1_000, standardPerHour: 10_000 },
  hasTls: false,
  ja4plus: true,
}
const ADMIN: WantedKey = { name: 'test', scopes: ['admin'], plan: 'unlimited', expiresAtMs: null }
