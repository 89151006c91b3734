import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { loadContent } from '../../src/commands/signature-content.ts'
import { createLogTo } from '../../src/log.ts'
import { createManageServer } from '../../src/manage/app.ts'
import { COMMAND_LINE } from '../../src/manage/audit.ts'
import { makeKey, type WantedKey } from '../../src/manage/auth/make-key.ts'
import { ManagementPlane } from '../../src/manage/management-plane.ts'
import { makeSignatureSet } from '../../src/plane/signature-set.ts'
import { makeSnapshot } from '../../src/plane/snapshot.ts'
import type { KeeperSettings } from '../../src/manage/sighting-keeper.ts'
import { Store } from '../../src/store/store.ts'

/** A management plane that listens, with a database of its own, and whoever calls it. */
export class TestManagement {
  readonly url: string
  readonly storeUrl: string
  readonly failures: Error[] = []
  /** How often something was to be brought to proxies. */
  nudges = 0
  readonly #adminKey: string

  /** With `knows` it judges by the signatures that come with Gatehouse. */
  static async start(t: Test, { knows = false, autoAccept = false } = {}): Promise<TestManagement> {
    const folder = await mkdtemp(join(tmpdir(), 'gatehouse-manage-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    const storeUrl = `sqlite:${join(folder, 'gatehouse.db')}`
    const adminKey = await keyIn(storeUrl, ADMIN)
    const plane = new ManagementPlane(
      {
        storeUrl,
        storePassword: null,
        publicUrl: null,
        adminKey: null,
        ja4plus: true,
        autoAccept,
        seen: SEEN,
      },
      createLogTo('silent', { write: () => undefined }),
      { publisher: { nudge: () => void manage.nudges++ }, opened: () => undefined, stored: () => undefined },
    )
    const failures: Error[] = []
    const server = createManageServer({
      unready: () => [],
      metrics: async () => '',
      failed: (error) => failures.push(error),
      api: plane.middleware,
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const manage = new TestManagement(`http://127.0.0.1:${port}`, storeUrl, adminKey, failures)
    await plane.start({ host: '127.0.0.1', port })
    if (knows) {
      const content = await loadContent({ feeds: [], paths: [], weightsFile: null })
      const set = await makeSignatureSet(content, join(folder, 'snapshots'), null)
      await plane.use(makeSnapshot(1, { rules: [] }, Date.now(), set))
    }
    t.teardown(async () => {
      server.close()
      server.closeAllConnections()
      await plane.close()
    })
    return manage
  }

  private constructor(url: string, storeUrl: string, adminKey: string, failures: Error[]) {
    this.url = url
    this.storeUrl = storeUrl
    this.#adminKey = adminKey
    this.failures = failures
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

async function keyIn(storeUrl: string, wanted: WantedKey): Promise<string> {
  const store = await Store.open(storeUrl)
  try {
    return (await makeKey(store, wanted, COMMAND_LINE, Date.now())).key
  } finally {
    await store.close()
  }
}

const DAY_MS = 86_400_000
const SEEN: KeeperSettings = {
  sightingsMs: DAY_MS,
  sightingsMax: 100_000,
  rollups: { minutesMs: 2 * DAY_MS, hoursMs: 90 * DAY_MS, daysMs: 1825 * DAY_MS },
  observed: { addressesMin: 5, requestsMin: 5, max: 1_000 },
}
const ADMIN: WantedKey = { name: 'test', scopes: ['admin'], plan: 'unlimited', expiresAtMs: null }
