import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Router from '@koa/router'
import Koa from 'koa'
import { loadContent } from '../../src/commands/signature-content.ts'
import { createLogTo } from '../../src/log.ts'
import { createManageServer } from '../../src/manage/app.ts'
import { COMMAND_LINE } from '../../src/manage/audit.ts'
import { makeKey } from '../../src/manage/auth/make-key.ts'
import { ManagementPlane } from '../../src/manage/management-plane.ts'
import { makeSignatureSet } from '../../src/plane/signature-set.ts'
import { makeSnapshot } from '../../src/plane/snapshot.ts'
import { Store } from '../../src/store/store.ts'

/** A process of its own that serves either, and says where on a line of JSON; it ends with its standard input. */
const server = process.argv[2] === 'empty' ? await empty() : await manage()

async function empty(): Promise<{ server: Server; key: string }> {
  const app = new Koa()
  const router = new Router()
  router.post('/v1/detect', (ctx) => {
    ctx.body = { ok: true }
  })
  app.use(router.routes())
  return { server: createServer(app.callback()), key: '' }
}

async function manage(): Promise<{ server: Server; key: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-manage-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const storeUrl = `sqlite:${join(folder, 'gatehouse.db')}`
  const store = await Store.open(storeUrl)
  const wanted = { name: 'bench', scopes: ['admin'], plan: 'unlimited', expiresAtMs: null } as const
  const { key } = await makeKey(store, wanted, COMMAND_LINE, Date.now())
  await store.close()
  const plane = new ManagementPlane(
    {
      ...{ storeUrl, storePassword: null, publicUrl: null, adminKey: null, ja4plus: true, hasTls: false },
      ...{ rateLimits: { freePerDay: 1_000, standardPerHour: 10_000 }, authFailuresPerMinute: 120 },
      auditRetentionMs: 86_400_000,
    },
    createLogTo('error', process.stderr),
  )
  await plane.start({ host: '127.0.0.1', port: 1 })
  const content = await loadContent({ feeds: [], paths: [], weightsFile: null })
  const set = await makeSignatureSet(content, join(folder, 'snapshots'), null)
  await plane.use(makeSnapshot(1, { rules: [] }, Date.now(), set))
  const failed = (error: Error) => process.stderr.write(`${error.stack}\n`)
  const server = createManageServer({
    unready: () => [],
    metrics: async () => '',
    failed,
    api: plane.middleware,
  })
  return { server, key }
}

server.server.listen(0, '127.0.0.1')
await once(server.server, 'listening')
const { port } = server.server.address() as AddressInfo
process.stdout.write(`${JSON.stringify({ port, key: server.key })}\n`)
process.stdin.resume().once('end', () => process.exit())
