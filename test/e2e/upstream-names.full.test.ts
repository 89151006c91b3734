import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { FaultsFile, NAMES_SUFFIX } from '../../bench/chaos/faults-file.ts'
import { type Route, startApp } from './app.ts'
import { eventually } from './fleet.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'

// The app's name is not found when the gateway starts, and while its files change.

const FAULTS = new URL('../../bench/chaos/faults.ts', import.meta.url).href

const closing: Route = (_, response) => {
  response.writeHead(200, { connection: 'close' }).end('ok')
}

const ANSWERS = [
  ['ENOTFOUND', 502, 'upstream_unreachable'],
  ['EAI_AGAIN', 502, 'upstream_unreachable'],
  ['silent', 504, 'upstream_connect_timeout'],
] as const

for (const [command, answers] of [
  ['proxy', ANSWERS],
  ['up', ANSWERS.slice(1, 2)],
] as const)
  for (const [names, status, code] of answers)
    test(`${command}: a name that is ${names} at the start: it starts, says ${code}, and is well when it is found`, async (t) => {
      const { gatehouse, faults } = await start(t, command, names)
      for (const probe of ['live', 'ready'])
        assert.equal((await fetch(`${gatehouse.manage}/health/${probe}`)).status, 200)
      // More at once than there are threads that may wait for a name.
      const waiting = Array.from({ length: 8 }, () => answer(gatehouse, '/'))
      assert.deepEqual(await answer(gatehouse, '/closed'), BLOCKED, 'who needs no app waits for no name')
      for (const each of await Promise.all(waiting)) assert.deepEqual(each, { status, code })
      faults.set({ names: 'found' })
      if (names === 'silent') await faults.letGo()
      await eventually(async () => (await answer(gatehouse, '/')).status === 200)
    })

test('a reload while the name is not found: good files are taken, bad ones leave the old ones in use', async (t) => {
  const { gatehouse, faults, policyFile } = await start(t, 'up', 'found')
  assert.deepEqual(await answer(gatehouse, '/'), OK)
  faults.set({ names: 'ENOTFOUND' })
  await eventually(async () => (await answer(gatehouse, '/')).status === 502)
  writeFileSync(policyFile, policy('/shut'))
  process.kill(gatehouse.pid, 'SIGHUP')
  await eventually(async () => (await answer(gatehouse, '/shut')).status === 451)
  assert.deepEqual(await answer(gatehouse, '/closed'), { status: 502, code: 'upstream_unreachable' })
  writeFileSync(policyFile, 'rules: [{nme: bad}]\n')
  process.kill(gatehouse.pid, 'SIGHUP')
  await eventually(async () => /gatehouse_reload_current\{.*\} 0/.test(await metrics(gatehouse)))
  assert.deepEqual(await answer(gatehouse, '/shut'), BLOCKED)
  faults.set({ names: 'found' })
  await eventually(async () => (await answer(gatehouse, '/')).status === 200)
  assert.deepEqual(await answer(gatehouse, '/shut'), BLOCKED)
  assert.deepEqual(await answer(gatehouse, '/closed'), OK)
})

async function start(
  t: Test,
  command: 'up' | 'proxy',
  names: 'found' | (typeof ANSWERS)[number][0],
): Promise<{ gatehouse: RunningGatehouse; faults: FaultsFile; policyFile: string }> {
  const folder = temporaryFolder(t)
  // Nothing is kept open: each request asks for the name.
  const app = await startApp(t, { '/closed': closing, '/': closing })
  const faults = new FaultsFile(folder)
  t.teardown(() => faults.letGo())
  faults.set({ names })
  const policyFile = join(folder, 'policy.yaml')
  writeFileSync(policyFile, policy('/closed'))
  const url = `http://app${NAMES_SUFFIX}:${new URL(app.url).port}`
  const gatehouse = await startGatehouse(t, {
    command,
    settings: [`upstreams: [{name: app, urls: ['${url}'], connect_timeout: 1s}]`],
    argv: ['--policy', policyFile, '--data', join(folder, 'data')],
    variables: { NODE_OPTIONS: `--import ${FAULTS}`, CHAOS_FAULTS_FILE: faults.path },
    expects: /policy/,
  })
  return { gatehouse, faults, policyFile }
}

function policy(path: string): string {
  return `rules: [{name: closed, when: {path: ${path}}, action: {block: {status: 451}}}]\n`
}

/** On a connection of its own; `code`: what Gatehouse says where it answers in the app's place. */
function answer(
  { port, ca }: RunningGatehouse,
  path: string,
): Promise<{ status: number; code: string | null }> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: 'localhost', port, path, ca, agent: false })
    sent.on('error', reject).on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
      response.on('end', () => {
        const code = /"code":"(\w+)"/.exec(text)?.[1] ?? null
        resolve({ status: response.statusCode!, code })
      })
    })
    sent.end()
  })
}

async function metrics({ manage }: RunningGatehouse): Promise<string> {
  return (await fetch(`${manage}/metrics`)).text()
}

const OK = { status: 200, code: null }
const BLOCKED = { status: 451, code: 'blocked' }
