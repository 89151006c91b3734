import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { parseSighting } from '../../src/plane/sighting-document.ts'
import { GATEHOUSE } from '../e2e/programs.ts'
import { memoryIo } from './memory-io.ts'

test('what the gateway has seen is in sightings.file, without secrets, and a policy can be tried on it', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-seen-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const app = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1')
  t.teardown(() => app.close())
  await once(app, 'listening')
  const file = join(folder, 'seen.jsonl')
  const config = join(folder, 'gatehouse.yaml')
  const upstream = `http://127.0.0.1:${(app.address() as AddressInfo).port}`
  writeFileSync(
    config,
    `proxy: {upstream: "${upstream}", listen: "127.0.0.1:0", workers: 2}
manage: {listen: "127.0.0.1:0"}
data: {dir: data}
sightings: {file: seen.jsonl}
`,
  )
  const env = { PATH: process.env['PATH'] }
  const gateway = spawn(process.execPath, [GATEHOUSE, 'up', '--config', config], { env })
  t.teardown(async () => {
    const exit = once(gateway, 'exit')
    gateway.kill('SIGTERM')
    await wait(200)
    gateway.kill('SIGTERM') // the second one ends it at once, with its workers
    await exit
  })
  const port = await portOf(gateway.stderr)
  for (const path of ['/api/a?token=SECRET', '/api/b', '/robots.txt']) await ask(port, path)
  while (!existsSync(file) || readFileSync(file, 'utf8').split('\n').length < 4) await wait(20)

  const text = readFileSync(file, 'utf8')
  assert.ok(!text.includes('SECRET'), text)
  const seen = text.trimEnd().split('\n').map(parseSighting)
  const paths = seen.map((each) => (typeof each === 'string' ? each : each.path))
  assert.deepEqual(paths.toSorted(), ['/api/a', '/api/b', '/robots.txt'])

  const policy = join(folder, 'new.yaml')
  writeFileSync(policy, 'rules:\n  - {name: api, when: {path: /api/*}, action: block}\n')
  const io = memoryIo()
  assert.equal(await runCli(COMMANDS, ['check', '--replay', file, '--policy', policy, '--json'], io), 0)
  const { changed, unchanged, transitions } = JSON.parse(io.out)
  assert.deepEqual([changed, unchanged], [2, 1])
  assert.deepEqual(transitions, [{ from: 'tag', to: 'block', count: 2 }])
})

/** From the line that says it is ready. */
async function portOf(log: NodeJS.ReadableStream): Promise<number> {
  const said: string[] = []
  for await (const line of createInterface({ input: log })) {
    said.push(line)
    const { listen } = line.startsWith('{') ? JSON.parse(line) : { listen: undefined }
    if (listen !== undefined) return Number(listen.split(':').at(-1))
  }
  return assert.fail(said.join('\n'))
}

async function ask(port: number, path: string): Promise<void> {
  const headers = { authorization: 'Bearer SECRET', cookie: 'session=SECRET' }
  const sent = request({ host: '127.0.0.1', port, path, headers, rejectUnauthorized: false, agent: false })
  sent.end()
  const [response] = await once(sent, 'response')
  response.resume()
  await once(response, 'end')
}
