import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Router from '@koa/router'
import Koa from 'koa'
import { createLog } from '../../src/shared/log.ts'
import { OPERATION_IDS } from '../../src/manage/api/operations.ts'
import { ManageTraffic } from '../../src/manage/http/front/traffic.ts'
import { TestManagement } from '../../test/manage/management.ts'

/** A process of its own that serves either, and says where on a line of JSON; it ends with its standard input. */
const served = process.argv[2] === 'empty' ? await empty() : await manage()

async function empty(): Promise<{ port: number; key: string }> {
  const app = new Koa()
  const router = new Router()
  router.post('/v1/detect', (ctx) => {
    ctx.body = { ok: true }
  })
  app.use(router.routes())
  const server = createServer(app.callback()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, key: '' }
}

/** Requests are counted against a plan that is never used up. */
async function manage(): Promise<{ port: number; key: string }> {
  const undoings: (() => unknown)[] = []
  const owner = { teardown: (undo: () => unknown) => void undoings.push(undo) }
  const rateLimits = { freePerDay: 1_000_000_000, standardPerHour: 1_000_000_000 }
  const traffic = new ManageTraffic(
    OPERATION_IDS,
    false,
    createLog({ level: 'info', perSecond: null, format: 'json' }),
  )
  const management = await TestManagement.start(owner, {
    ...{ knows: true, rateLimits },
    answered: (visit) => traffic.answered(visit),
  })
  process.stdin.once('end', async () => {
    for (const undo of undoings.toReversed()) await undo()
  })
  const key = await management.key({ scopes: ['read', 'detect'], plan: 'standard' })
  return { port: Number(new URL(management.url).port), key }
}

process.stdout.write(`${JSON.stringify(served)}\n`)
process.stdin.resume().once('end', () => setTimeout(() => process.exit(), 500))
