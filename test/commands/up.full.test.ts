import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, request } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import { type Test, test } from 'tap'
import { banner } from '../../src/commands/banner.ts'
import type { Gateway } from '../../src/runtime/gateway.ts'
import { DEFAULT_POLICY } from '../../src/manage/publish/policy-keeper.ts'
import { DRAINING } from '../../src/plane/readiness.ts'
import { GATEHOUSE, run } from '../e2e/programs.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'
import { memoryIo } from './memory-io.ts'
import { childrenOf, workersOf } from '../processes.ts'
import { until } from '../until.ts'

const ca = await testCa()
const AUTHORITY = Buffer.from(ca.certificate)
const NAMES = ['localhost', 'app.example.test']
const [first, second] = await Promise.all([testLeaf(ca, NAMES), testLeaf(ca, NAMES)])

test('up in front of an app: clients that trust the development CA get through, also after a restart', async (t) => {
  const app = await serveApp(t, (message, response) => response.end(JSON.stringify(message.headers)))
  const gateway = await start(t, 'up', ['--upstream', app.url, '--workers', '2'], {
    env: { GATEHOUSE_PROXY_DRAIN_TIMEOUT: '1s' },
  })
  const developmentCa = join(gateway.folder, 'data', 'dev-ca', 'ca.pem')
  assert.equal(resolve(gateway.folder, String(gateway.ready['developmentCa'])), developmentCa)
  const own = { ca: readFileSync(developmentCa), path: '/hello?x=1' }
  for (const { status, body } of [await ask(gateway.port, own), await askHttp2(gateway.port, own)]) {
    assert.equal(status, 200)
    assert.match(JSON.parse(body)['x-ja4-fingerprint'], /^t13d/)
  }
  assert.deepEqual(await gateway.manage('/health/ready'), [200, { status: 'ready', reasons: [] }])
  assert.deepEqual(await gateway.manage('/health/live'), [200, { status: 'live' }])
  const metrics = await gateway.metrics()
  assert.equal(metrics['gatehouse_workers_listening'], 2)
  assert.equal(
    metrics[
      'gatehouse_requests_total{verdict="automation",category="none",action="tag",status="2xx",app="default"}'
    ],
    2,
  )
  assert.equal(statSync(join(gateway.folder, 'data', 'dev-ca')).mode & 0o777, 0o700)
  assert.equal(workersOf(gateway.pid).length, 2)

  gateway.process.kill('SIGTERM')
  assert.deepEqual(await gateway.exit, [0, null])
  assert.deepEqual(readdirSync(gateway.folder), ['data'])

  const again = await start(t, 'up', ['--upstream', app.url, '--workers', '1'], { folder: gateway.folder })
  assert.equal((await ask(again.port, own)).status, 200, 'the CA is still the same')
})

test('the data plane alone is one process', async (t) => {
  const app = await serveApp(t, (_, response) => response.end('ok'))
  const config = join(temporaryFolder(t), 'gatehouse.yaml')
  writeFileSync(config, `proxy:\n  upstreams:\n    - name: app\n      urls: ${app.url}\n`)
  const gateway = await start(t, 'proxy', ['--config', config, ...certificate(t)])
  assert.equal((await ask(gateway.port)).body, 'ok')
  assert.equal(
    (await gateway.metrics())['gatehouse_upstream_requests_total{upstream="app",outcome="answered"}'],
    1,
  )
  assert.deepEqual(childrenOf(gateway.pid), [])
  assert.deepEqual(await gateway.manage('/health/ready'), [200, { status: 'ready', reasons: [] }])
  gateway.process.kill('SIGINT')
  assert.deepEqual(await gateway.exit, [0, null])
})

test('SIGTERM: first not ready, still serving, then requests under way end, then it does', async (t) => {
  const held: (() => void)[] = []
  const app = await serveApp(t, (message, response) => {
    if (message.url === '/held') held.push(() => response.end('late'))
    else response.end('ok')
  })
  const gateway = await start(t, 'up', ['--upstream', app.url, '--workers', '2', ...certificate(t)], {
    env: { GATEHOUSE_PROXY_DRAIN_TIMEOUT: '9s' },
  })
  const late = Array.from({ length: 4 }, () => ask(gateway.port, { path: '/held' }))
  await until(() => held.length === 4)
  gateway.process.kill('SIGTERM')
  await until(async () => (await gateway.manage('/health/ready'))[0] === 503)
  assert.deepEqual((await gateway.manage('/health/ready'))[1], { status: 'not-ready', reasons: [DRAINING] })
  assert.equal((await gateway.manage('/health/live'))[0], 200)
  assert.equal(
    (await ask(gateway.port)).body,
    'ok',
    'clients that connect before load balancers notice are served',
  )
  await until(() =>
    ask(gateway.port).then(
      () => false,
      (error) => error.code === 'ECONNREFUSED',
    ),
  )
  for (const answer of held) answer()
  for (const { body } of await Promise.all(late)) assert.equal(body, 'late')
  assert.deepEqual(await gateway.exit, [0, null])
  assert.ok(gateway.lines().some(({ message }) => message === 'stopped'))
})

test('a second signal ends it at once, and its workers', async (t) => {
  const app = await serveApp(t, () => undefined)
  const gateway = await start(t, 'up', ['--upstream', app.url, '--workers', '2', ...certificate(t)])
  const workers = workersOf(gateway.pid)
  const lost = assert.rejects(ask(gateway.port))
  await once(app.server, 'request')
  gateway.process.kill('SIGINT')
  await until(() => gateway.lines().some(({ message }) => message === 'stopping'))
  gateway.process.kill('SIGTERM')
  assert.deepEqual(await gateway.exit, [143, null])
  await lost
  await until(() => workers.every((pid) => !isAlive(pid)))
})

test('when the primary is killed, workers end what is under way, free the port, and go', async (t) => {
  const held: (() => void)[] = []
  const app = await serveApp(t, (_, response) => void held.push(() => response.end('late')))
  const gateway = await start(t, 'up', ['--upstream', app.url, '--workers', '2', ...certificate(t)])
  const workers = workersOf(gateway.pid)
  const late = Array.from({ length: 4 }, () => ask(gateway.port))
  await until(() => held.length === 4)
  gateway.process.kill('SIGKILL')
  await gateway.exit
  await until(() =>
    ask(gateway.port).then(
      () => false,
      (error) => error.code === 'ECONNREFUSED',
    ),
  )
  assert.ok(workers.some(isAlive))
  for (const answer of held) answer()
  for (const { body } of await Promise.all(late)) assert.equal(body, 'late')
  await until(() => workers.every((pid) => !isAlive(pid)))
})

test('certificates and policy reload under load: a bad file keeps the old one, and no request is lost', async (t) => {
  const app = await serveApp(t, (_, response) => response.end('ok'))
  const folder = temporaryFolder(t)
  const [cert, key, policy] = ['tls.crt', 'tls.key', 'policy.yaml'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  writeFileSync(cert, first.certificate)
  writeFileSync(key, first.key)
  writeFileSync(policy, 'rules: []\n')
  const gateway = await start(t, 'up', [
    '--upstream',
    app.url,
    '--workers',
    '2',
    '--cert',
    cert,
    '--key',
    key,
    '--policy',
    policy,
  ])
  const load = loadOn(t, gateway.port)
  const metric = (name: string, what: string) => async () =>
    (await gateway.metrics())[`gatehouse_${name.replace('(', `{what="${what}"`)}`]
  const reloads = (what: string, outcome: string) =>
    gateway.metrics().then((all) => all[`gatehouse_reload_total{what="${what}",outcome="${outcome}"}`])
  assert.equal(await metric('reload_current(}', 'policy')(), 1)

  writeFileSync(key, second.key)
  await until(async () => (await reloads('certificates', 'failed')) === 1)
  assert.equal(await leafOf(gateway.port), first.certificate)
  writeFileSync(cert, second.certificate)
  await until(async () => (await leafOf(gateway.port)) === second.certificate)
  assert.equal(await metric('reload_current(}', 'certificates')(), 1)

  writeFileSync(
    policy,
    'rules:\n  - name: no-entry\n    when: {path: /no}\n    action: {block: {status: 451}}\n',
  )
  await until(async () => (await ask(gateway.port, { path: '/no' })).status === 451)
  writeFileSync(policy, 'rules:\n  - name: no-entry\n    when: {path: /no}\n    action: {blok: {}}\n')
  await until(async () => (await reloads('policy', 'failed')) === 1)
  assert.equal((await ask(gateway.port, { path: '/no' })).status, 451)
  assert.equal(await metric('reload_current(}', 'policy')(), 0)
  const said = gateway.lines().find(({ what, problems }) => what === 'policy' && problems !== undefined)
  assert.match(String(said!['problems']), /policy\.yaml:4:\d+: rule "no-entry".*blok/)

  gateway.process.kill('SIGHUP')
  await until(
    async () => (await reloads('policy', 'failed')) === 2 && (await reloads('ticket-keys', 'loaded')) === 1,
  )
  const { answered, failures } = await load.stop()
  assert.deepEqual(failures, [])
  assert.ok(answered > 100)
})

test("Kubernetes' swap of a secret is a reload", async (t) => {
  const app = await serveApp(t, (_, response) => response.end('ok'))
  const folder = temporaryFolder(t)
  const mount = (name: string, made: typeof first) => {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'tls.crt'), made.certificate)
    writeFileSync(join(folder, name, 'tls.key'), made.key)
    symlinkSync(name, join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  }
  mount('..2026_01', first)
  for (const name of ['tls.crt', 'tls.key']) symlinkSync(`..data/${name}`, join(folder, name))
  const gateway = await start(t, 'proxy', [
    '--upstream',
    app.url,
    '--cert',
    join(folder, 'tls.crt'),
    '--key',
    join(folder, 'tls.key'),
  ])
  const load = loadOn(t, gateway.port)
  assert.equal(await leafOf(gateway.port), first.certificate)
  mount('..2026_02', second)
  rmSync(join(folder, '..2026_01'), { recursive: true })
  await until(async () => (await leafOf(gateway.port)) === second.certificate)
  const metrics = await gateway.metrics()
  assert.equal(metrics['gatehouse_reload_total{what="certificates",outcome="failed"}'], 0)
  assert.deepEqual((await load.stop()).failures, [])
})

test('what keeps it from starting is said in one line or more, with what to do, and exit code 1', async (t) => {
  const [taken, alsoTaken] = [await takenPlace(t), await takenPlace(t)]
  const folder = temporaryFolder(t)
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const cert = file('cert.pem', first.certificate)
  const pair = ['--cert', cert, '--key', file('key.pem', first.key)]
  const upstream = ['--upstream', 'http://127.0.0.1:1']
  mkdirSync(join(folder, 'odd'))
  file('odd/snapshots', 'no folder')
  const badPolicy = file('bad.yaml', 'rules:\n  - name: x\n    when: {pth: /}\n    action: pass\n')
  const cases: readonly (readonly [string[], RegExp])[] = [
    [
      [...upstream, ...pair, '--listen', taken],
      /cannot listen on 127\.0\.0\.1 port \d+: another program listens there/,
    ],
    [
      [...upstream, ...pair, '--manage', taken],
      /cannot listen on 127\.0\.0\.1 port \d+: another program listens there; change it with --manage/,
    ],
    [
      [...upstream, ...pair, '--listen', taken, '--manage', alsoTaken],
      /port \d+: another program listens there; change it with --listen\n.*change it with --manage/,
    ],
    [
      [...upstream, '--cert', cert, '--key', file('other.pem', second.key)],
      /cert\.pem does not belong to the key in .*other\.pem/,
    ],
    [
      [...upstream, '--data', join(cert, 'x')],
      /cannot be kept in .*give --data a folder that can be written/,
    ],
    [
      [...upstream, ...pair, '--data', join(folder, 'odd')],
      /signatures cannot be kept in .*give --data a folder that can be written/,
    ],
    [[...upstream, ...pair, '--policy', badPolicy], /bad\.yaml:3:\d+: rule "x": .*pth/],
    [pair, /upstream/],
  ]
  const runs = cases.map(([argv, what], index) => ({ command: 'proxy', argv, what, data: `data${index}` }))
  runs.push({ ...runs[0]!, command: 'up', data: 'data' }) // where it is a worker that finds out
  await Promise.all(
    runs.map(async ({ command, argv, what, data }) => {
      const place = ['--listen', '127.0.0.1:0', '--manage', '127.0.0.1:0', '--data', join(folder, data)]
      const all = [...NODE, GATEHOUSE, command, ...place, ...argv]
      const { status, stderr } = await run('env', all, { env: process.env })
      assert.equal(status, 1, `${command} ${argv.join(' ')}\n${stderr}`)
      assert.match(stderr, what)
      assert.match(stderr, new RegExp(`^gatehouse ${command}: `, 'm'))
      assert.ok(!stderr.includes('    at '), stderr)
    }),
  )
})

test('shows its addresses and its CA on a terminal', async () => {
  const io = memoryIo('', { isTerminal: true })
  const upstreams = [{ name: 'default', urls: ['http://localhost:3000'] }]
  const settings = {
    ...{ version: '1.2.3', workers: 2, worker: { upstreams } },
    ...{ management: { hasDashboard: true }, dataFolder: '/data' },
  }
  const development = {
    names: ['localhost', '127.0.0.1'],
    caFile: "/data/it's/ca.pem",
    caFingerprint: 'AB:CD',
    isNew: true,
  }
  const addresses = { listen: { host: '0.0.0.0', port: 8443 }, plainListen: null }
  const gateway = {
    settings,
    addresses,
    certificates: { development },
    policyInForce: DEFAULT_POLICY,
    manageAddress: { host: '127.0.0.1', port: 9080 },
  }
  assert.equal(
    banner(gateway as unknown as Gateway, io),
    `Gatehouse 1.2.3 is ready with 2 workers
  Listening    https://localhost:8443
  Upstream     http://localhost:3000
  Certificate  for development, good for localhost, 127.0.0.1
  New CA       '/data/it'\\''s/ca.pem'
               SHA-256 AB:CD
  Try it       curl --cacert '/data/it'\\''s/ca.pem' https://localhost:8443/
  Policy       none: every request is tagged, none is blocked
  Dashboard    http://localhost:9080/dashboard/
  First key    npm run -s gatehouse -- keys create --name admin --access admin --data /data
  Health       http://localhost:9080/health/ready
  Metrics      http://localhost:9080/metrics
  Next         1. send a request to the address above
               2. make the first key and sign in to the dashboard with it
               3. write rules, starting from config/policy.yaml: npm run -s gatehouse -- check finds mistakes
`,
  )
})

/** Where another program listens. */
async function takenPlace(t: Test): Promise<string> {
  const other = createTcpServer()
  other.listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  return `127.0.0.1:${(other.address() as AddressInfo).port}`
}

interface App {
  readonly server: Server
  readonly url: string
}

async function serveApp(t: Test, listener: RequestListener): Promise<App> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

interface Wish {
  readonly folder?: string
  readonly env?: Readonly<Record<string, string>>
}

/** As a user does: in a folder of its own, on free ports; resolves once it says that it is ready. */
async function start(
  t: Test,
  command: string,
  argv: readonly string[],
  { folder = temporaryFolder(t), env = {} }: Wish = {},
) {
  const place = ['--listen', '127.0.0.1:0', '--manage', '127.0.0.1:0']
  const child = spawn('env', [...NODE, GATEHOUSE, command, ...place, ...argv], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => end(child))
  const exit = once(child, 'exit')
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    said += chunk
  })
  const lines = (): Record<string, unknown>[] =>
    said.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []))
  const isReady = () => said.endsWith('\n') && lines().some(({ message }) => message === 'ready')
  await Promise.race([until(isReady), exit.then(() => assert.fail(`it ended: ${said}`))])
  const ready = lines().find(({ message }) => message === 'ready')!
  const manageAt = `http://${ready['manage']}`
  return {
    process: child,
    pid: child.pid!,
    folder,
    exit,
    lines,
    ready,
    port: Number(String(ready['listen']).split(':').at(-1)),
    async manage(path: string): Promise<[number, unknown]> {
      const response = await fetch(manageAt + path)
      return [response.status, await response.json()]
    },
    async metrics(): Promise<Record<string, number>> {
      const page = await (await fetch(`${manageAt}/metrics`)).text()
      const samples = page.split('\n').filter((line) => line.startsWith('gatehouse'))
      return Object.fromEntries(
        samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
      )
    },
  }
}

/** Also the workers of one that a test has killed. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const children = childrenOf(child.pid!)
  child.kill('SIGKILL')
  for (const { pid } of children) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  await once(child, 'exit')
}

function certificate(t: Test): string[] {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'tls.crt'), first.certificate)
  writeFileSync(join(folder, 'tls.key'), first.key, { mode: 0o600 })
  return ['--cert', join(folder, 'tls.crt'), '--key', join(folder, 'tls.key')]
}

async function ask(
  port: number,
  { path = '/', agent = false as Agent | false, ca = AUTHORITY } = {},
): Promise<{ status: number; body: string }> {
  const outgoing = request(`https://localhost:${port}${path}`, { ca, agent }).end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  return { status: response.statusCode!, body: await text(response) }
}

async function askHttp2(
  port: number,
  { path, ca }: { readonly path: string; readonly ca: Buffer },
): Promise<{ status: number; body: string }> {
  const session = connectHttp2(`https://localhost:${port}`, { ca })
  const stream = session.request({ ':path': path })
  const [head] = await once(stream, 'response')
  const body = await text(stream)
  session.close()
  return { status: head[':status'], body }
}

/** Requests without a pause, on connections that stay and on new ones, until it is stopped. */
function loadOn(
  t: Test,
  port: number,
): { stop(): Promise<{ answered: number; failures: readonly string[] }> } {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  t.teardown(() => agent.destroy())
  const failures: string[] = []
  let running = true
  let answered = 0
  const lanes = Array.from({ length: 6 }, async (_, lane) => {
    while (running) {
      try {
        const { status, body } = await ask(port, lane < 4 ? { agent } : {})
        assert.deepEqual([status, body], [200, 'ok'])
        answered++
      } catch (error) {
        failures.push(String(error))
      }
    }
  })
  return {
    async stop() {
      running = false
      await Promise.all(lanes)
      return { answered, failures }
    },
  }
}

async function leafOf(port: number): Promise<string> {
  const socket = connectTls({ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const pem = socket.getPeerX509Certificate()!.toString()
  socket.destroy()
  return pem
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ') // no process has to collect an orphan here
  } catch {
    return false
  }
}

function temporaryFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-up-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const NODE = ['-u', 'NODE_OPTIONS', '-u', 'FORCE_COLOR', process.execPath]
