import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { writeLongList } from '../signatures/long-list.ts'
import { type Gateway, post, startGateway } from './gateway.ts'

/**
 * How long after the answer to POST /submissions/{id}/review requests are judged by it, in a gateway of two workers:
 * the first, and all. `npm run bench:accepted [-- --busy --built --own COUNT]`: while something else keeps a processor
 * busy, with what `npm run build` makes, and with so many signatures of the operator's own.
 */
const { values } = parseArgs({
  options: {
    busy: { type: 'boolean', default: false },
    built: { type: 'boolean', default: false },
    own: { type: 'string', default: '0' },
    rounds: { type: 'string', default: '10' },
  },
})

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-accepted-'))
  const app = createServer((asked, response) => {
    response.end(JSON.stringify([asked.headers['x-ja4-fingerprint'], asked.headers['x-agent-name'] ?? null]))
  }).listen(0, '127.0.0.1')
  await once(app, 'listening')
  const busy = values.busy ? spawn(process.execPath, ['-e', 'for (;;);']) : null
  let gateway: Gateway | null = null
  try {
    gateway = await start(folder, (app.address() as AddressInfo).port)
    await sleep(3000) // for what a start does on the side
    await rounds(gateway)
  } finally {
    gateway?.child.kill('SIGKILL')
    busy?.kill('SIGKILL')
    app.close()
    app.closeAllConnections()
    await sleep(500) // workers follow
    rmSync(folder, { recursive: true })
  }
}

async function start(folder: string, appPort: number): Promise<Gateway> {
  const list = join(folder, 'long.jsonl')
  const own = Number(values.own)
  if (own > 0) await writeLongList(list, own)
  const variables = own > 0 ? { GATEHOUSE_SIGNATURES: list } : {}
  return startGateway({ folder, appPort, variables, isBuilt: values.built })
}

async function rounds(gateway: Gateway): Promise<void> {
  const { port } = gateway
  const first: number[] = []
  const all: number[] = []
  const { ja4 } = await ask(port)
  for (let round = 0; round < Number(values.rounds); round++) {
    const submission = { fingerprint: ja4, type: 'ja4', agent_name: 'Acme Bot', category: 'orchestrator' }
    const { submissions } = await post(gateway, '/v1/signatures/submit', submission)
    const review = `/v1/submissions/${submissions[0].id}/review`
    await post(gateway, review, { decision: 'accept' })
    const from = performance.now()
    await until(port, 'Acme Bot', 1)
    first.push(performance.now() - from)
    all.push((await until(port, 'Acme Bot', IN_A_ROW)) - from)
    await post(gateway, review, { decision: 'rollback' })
    await until(port, null, IN_A_ROW)
  }
  say('first request judged by it', first)
  say('all requests judged by it', all)
}

/** When the first of so many in a row was answered. */
async function until(port: number, agent: string | null, inARow: number): Promise<number> {
  let since = 0
  for (let count = 0; count < inARow; ) {
    const told = (await ask(port)).agent
    if (told !== agent) count = 0
    else if (++count === 1) since = performance.now()
    await sleep(5)
  }
  return since
}

/** On a connection of its own, which either worker may take, with a hello of its own. */
async function ask(port: number): Promise<{ ja4: string; agent: string | null }> {
  const options = { host: '127.0.0.1', port, agent: false, rejectUnauthorized: false, ciphers: CIPHERS }
  const asked = request(options).end()
  const [response] = await once(asked, 'response')
  let text = ''
  for await (const chunk of response) text += chunk
  const [ja4, agent] = JSON.parse(text)
  return { ja4, agent }
}

function say(what: string, times: number[]): void {
  times.sort((one, other) => one - other)
  const median = times[times.length >> 1]!
  process.stdout.write(
    `${what.padEnd(28)} ${median.toFixed(0)} ms at the median, ${times.at(-1)!.toFixed(0)} ms at worst\n`,
  )
}

const CIPHERS = 'TLS_CHACHA20_POLY1305_SHA256:ECDHE-ECDSA-AES128-SHA256:DHE-RSA-AES256-SHA'
/** Both workers take some of so many, but once in a million times. */
const IN_A_ROW = 20

await main()
process.exit()
