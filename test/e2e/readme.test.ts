import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { parse as parseYaml } from 'yaml'
import { parsePolicyText } from '../../src/config/source.ts'
import { inject } from '../../src/inject/injection.ts'
import { parsePod } from '../../src/inject/pod.ts'
import { DocumentServer, TEST_CA } from '../identity/document-server.ts'
import { sidecarSettings } from '../inject/reviews.ts'
import { type App, startApp } from './app.ts'
import { type ServingProcess, startProcess } from './gatehouse.ts'
import { GATEHOUSE, noCapture, plainEnvironment, skipped, temporaryFolder } from './programs.ts'
import { type Example, examples, freePort } from './readme.ts'
import { Receiver } from './receiver.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'

/** A file whose test does what the example says, with the example's own text or more. */
type Elsewhere = `test/${string}.test.ts` | '.ci/run'

/**
 * Every example of the README, by a text that is in no other one, in their order: what runs it as its reader would, or
 * where that is done.
 */
const EXAMPLES: readonly (readonly [
  mark: string,
  how: Elsewhere | ((bench: Bench, example: string) => unknown),
])[] = [
  ['npm ci && npm start', 'test/commands/demo.test.ts'],
  ['npm ci && npm test', '.ci/run'],
  ['-- up --upstream', (bench) => assert.match(bench.gate.said(), /"message":"ready"/)],
  ['# gatehouse.yaml', (bench, example) => keeps(bench, 'gatehouse.yaml', example)],
  ['# policy.yaml', (bench, example) => keeps(bench, 'policy.yaml', example)],
  ['-- doctor --config', isLookedAtBefore],
  ['trusted_headers:', trustsHeadersOfAProxy],
  ['// app.mjs', 'test/e2e/readme-apps.test.ts'],
  ['# agents.py', 'test/e2e/readme-apps.test.ts'],
  ['// Prices.java', 'test/e2e/readme-apps.test.ts'],
  ['map $http_x_agent_verdict', 'test/e2e/readme-apps.test.ts'],
  [
    'name: imitators',
    (_, example) => assert.equal(parsePolicyText(example, 'README.md').policy.rules.length, 3),
  ],
  ['gatehouse manage --config', 'test/e2e/fleet.test.ts'],
  ['gatehouse.dev/take-port', injected],
  ['--name me --access admin', usesTheApi],
  ['/v2/signatures', betaAnswers],
  ['clients create --name ci', getsAToken],
  ['users codes', makesPeople],
  ['openid:', isAGoodConfiguration],
  ['--without-password', makesSomebodyWithoutPassword],
  ['node gnap.mjs', getsAGrant],
  ['// gnap.mjs', 'test/manage/gnap.test.ts'],
  ['"client_name": "An example"', 'test/manage/agent-identity.test.ts'],
  ['node agent.mjs', showsItsIdentity],
  ['// agent.mjs', 'test/manage/agent-identity.test.ts'],
  ['/v1/events?types=', listensToEvents],
  ['hooks.example.com', postsWebhooks],
  ["from 'standardwebhooks'", verifiesAWebhook],
  ['"servers"', isAnMcpServer],
  ['.gatehouse-key\n', (bench, example) => bench.shell(example)],
  ['"mcpServers"', isStartedByAnMcpClient],
  ['"tools/call"', callsATool],
  ['a2a/v1/message:send', sendsMessages],
  ['tcpdump -i any', analyzes],
  ['"kind":"tls"', printsLinesLikeThese],
  ['evaluate test/classify', evaluates],
  ['Brier 0.0235', (bench, example) => printsTheTable(bench, example, [])],
  ['Brier 0.0337', (bench, example) => printsTheTable(bench, example, ['--folds', '10'])],
  ['record --out curl.jsonl', records],
  ['"client_hello_hex"', recordsLinesLikeThese],
  ['sign request', signsAndVerifies],
  ['ok  fields', (bench, example) => assert.deepEqual(steps(bench.verified), steps(example))],
  ['isProven', 'test/proxy/tag-signature.test.ts'],
]

test('every example of the README does what it says', { skip: skipped('curl') }, async (t) => {
  const all = examples()
  const unknown = all.filter(({ text }) => EXAMPLES.filter(([mark]) => text.includes(mark)).length !== 1)
  assert.deepEqual(unknown, [], 'each has one place in the table')
  assert.equal(all.length, EXAMPLES.length, 'the table has none that is not there')
  const bench = await startBench(t, all)
  for (const { section, text: example } of all) {
    const [mark, how] = EXAMPLES.find(([mark]) => example.includes(mark))!
    if (typeof how === 'string') assert.ok(existsSync(how), `${mark}: ${how} is not there`)
    else await t.test(`${section}: ${mark.trim()}`, async () => void (await how(bench, example)))
  }
})

test('every script that the README names is there', async () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'))
  const named = [...readFileSync('README.md', 'utf8').matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(
    ([, name]) => name!,
  )
  assert.ok(named.length > 20)
  assert.deepEqual(
    named.filter((name) => !(name in scripts)),
    [],
  )
})

/** What a reader has who has gone through the README from its beginning: one folder, and a gateway in front of an app. */
interface Bench {
  readonly t: Test
  readonly folder: string
  readonly gate: ServingProcess
  readonly app: App
  /** What `verify` has said. */
  verified: string
  /** Runs it as it stands there, but for addresses and names that are another here; it has to end well. */
  shell(example: string, options?: ShellOptions): Promise<Said>
}

interface ShellOptions {
  readonly input?: string
  readonly variables?: NodeJS.ProcessEnv
  /** What stands in the example, and what there is instead. */
  readonly instead?: readonly (readonly [from: string, to: string])[]
}

interface Said {
  readonly out: string
  /** The lines of `out`, each as JSON. */
  readonly json: readonly Json[]
  readonly err: string
}

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
type Json = any

async function startBench(t: Test, all: readonly Example[]): Promise<Bench> {
  const folder = temporaryFolder(t)
  const app = await startApp(t)
  const caFile = join(folder, 'ca.crt')
  writeFileSync(caFile, TEST_CA)
  const variables = {
    GATEHOUSE_PROXY_LISTEN: '127.0.0.1:0',
    GATEHOUSE_MANAGE_LISTEN: '127.0.0.1:0',
    GATEHOUSE_DATA_DIR: join(folder, 'data'),
    GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: 'true',
    GATEHOUSE_WEBHOOKS_ALLOW_PRIVATE_ADDRESSES: 'true',
    NODE_EXTRA_CA_CERTS: caFile,
  }
  const up = all.find(({ text }) => text.includes('-- up --upstream'))!.text
  const argv = up.replace('http://127.0.0.1:3000', app.url).trim().split(' ')
  const gate = await startProcess(t, argv.slice(argv.indexOf('up')), { folder, variables })
  const port = String(gate.ready['listen']).split(':').at(-1)
  const shim = join(folder, 'gatehouse')
  writeFileSync(shim, `#!/bin/sh\nexec '${process.execPath}' '${GATEHOUSE}' "$@"\n`)
  chmodSync(shim, 0o755)
  const ours = [
    ['npm run -s gatehouse --', 'gatehouse'],
    ['http://127.0.0.1:9080', gate.manage],
    ['https://localhost:8443', `https://localhost:${port}`],
    ['port 443', `port ${port}`],
    ['http://localhost:3000', app.url],
    [' test/', ` ${resolve('test')}/`],
  ] as const
  const shell = async (example: string, { input, variables: more = {}, instead = [] }: ShellOptions = {}) => {
    let script = example
    for (const [from, to] of [...instead, ...ours]) script = script.replaceAll(from, to)
    const env = plainEnvironment(folder, { ...variables, ...more })
    env['PATH'] = `${folder}:${env['PATH']}`
    const child = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', `${CURL}\n${script}`], {
      cwd: folder,
      env,
      detached: true,
      timeout: 180_000,
    })
    child.stdin.on('error', () => undefined).end(input ?? '')
    const [out, err, [status]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit'),
    ])
    endGroup(child)
    assert.equal(status, 0, `${script}\n${out}\n${err}`)
    return {
      ...{ out, err },
      get json() {
        return out
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line) as Json)
      },
    }
  }
  return { t, folder, gate, app, shell, verified: '' }
}

/** With what stands elsewhere on this machine. */
function keeps({ folder, app }: Bench, name: string, example: string): void {
  const text = example
    .replace('0.0.0.0:443', '127.0.0.1:0')
    .replace('http://127.0.0.1:3000', app.url)
    .replaceAll('/etc/gatehouse', folder)
    .replace('/var/lib/gatehouse', join(folder, 'from-a-file'))
  writeFileSync(join(folder, name), text)
}

async function isLookedAtBefore({ t, folder, shell }: Bench, example: string): Promise<void> {
  const leaf = await testLeaf(await testCa(), ['localhost'])
  writeFileSync(join(folder, 'tls.crt'), leaf.certificate)
  writeFileSync(join(folder, 'tls.key'), leaf.key, { mode: 0o600 })
  const [check, doctor, up] = example.trim().split('\n') as [string, string, string]
  // What the variables of the bench say is said by the file here.
  const variables = {
    ...{ GATEHOUSE_PROXY_LISTEN: undefined, GATEHOUSE_DATA_DIR: undefined },
    GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: undefined,
    GATEHOUSE_WEBHOOKS_ALLOW_PRIVATE_ADDRESSES: undefined,
  }
  const { out, err } = await shell(check, { variables })
  assert.match(out, /policy\.yaml/)
  assert.equal(err, '')
  // Nobody has started it yet: what it finds is for the one machine it is run on.
  assert.match((await shell(`${doctor.replace(/ +#.*/, '')} || true`, { variables })).out, /certificate/i)
  const argv = up.split(' ')
  const gate = await startProcess(t, argv.slice(argv.indexOf('up')), {
    folder,
    variables: { GATEHOUSE_MANAGE_LISTEN: '127.0.0.1:0' },
  })
  assert.match(gate.said(), /"message":"ready"/)
  await gate.stop()
}

function injected(_: Bench, example: string): void {
  const { metadata } = parseYaml(example)
  const ports = [{ name: 'https', containerPort: 3443 }]
  const pod = parsePod({ metadata, spec: { containers: [{ name: 'app', image: 'app', ports }] } })
  const injection = inject(pod, sidecarSettings(), '1.0.0')
  assert.equal(injection.kind, 'patch')
  assert.ok(JSON.stringify(injection).includes('web-tls'))
}

async function usesTheApi({ folder, shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  assert.equal(json[0].agents[0].id, 'gptbot')
  assert.deepEqual([json[1].is_agent, json[1].agent_id], [true, 'gptbot'])
  assert.match(readFileSync(join(folder, 'key'), 'utf8'), /^ghk_\S+\n$/)
}

async function betaAnswers({ shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  assert.equal(json[0].signatures.length, 1)
  assert.equal(json[1].length ?? json[1].results.length, 2)
}

async function getsAToken({ shell }: Bench, example: string): Promise<void> {
  const [make, ...ask] = example.split('\n') as [string, ...string[]]
  const { err } = await shell(make)
  const [id] = /^cli_[\w-]+/m.exec(err) ?? assert.fail(err)
  const { json } = await shell(ask.join('\n'), { variables: { ID: id } })
  assert.equal(json[0].token_type, 'Bearer')
}

async function makesPeople({ shell }: Bench, example: string): Promise<void> {
  const { out, err } = await shell(example, { input: 'a password of tests and of nothing else\n' })
  assert.match(out + err, /otpauth:\/\//)
}

async function trustsHeadersOfAProxy({ folder, shell }: Bench, example: string): Promise<void> {
  writeFileSync(join(folder, 'trusted.yaml'), example)
  const { out } = await shell('gatehouse check --config trusted.yaml --upstream http://127.0.0.1:3000')
  assert.match(out, /cf-connecting-ip/)
}

async function isAGoodConfiguration({ folder, shell }: Bench, example: string): Promise<void> {
  writeFileSync(join(folder, 'secret'), 'a secret of tests', { mode: 0o600 })
  writeFileSync(join(folder, 'openid.yaml'), example.replace('/run/secrets/openid', join(folder, 'secret')))
  const { out } = await shell('gatehouse check --config openid.yaml --upstream http://127.0.0.1:3000')
  assert.match(out, /id\.example\/realms\/us/)
}

async function makesSomebodyWithoutPassword({ folder, shell }: Bench, example: string): Promise<void> {
  await shell(example, { variables: { GATEHOUSE_DATA_DIR: join(folder, 'other') } })
}

async function getsAGrant({ folder, shell }: Bench, example: string): Promise<void> {
  writeFileSync(join(folder, 'gnap.mjs'), programOf('// gnap.mjs'))
  const { out } = await shell(example)
  assert.match(out, /agent_id: 'gptbot'/)
}

async function showsItsIdentity({ t, folder, shell }: Bench, example: string): Promise<void> {
  const server = await DocumentServer.start(t)
  const agent = server.url('/identity.json', 'localhost')
  const [document] = examples().filter(({ text }) => text.includes('"client_name": "An example"'))
  writeFileSync(join(folder, 'agent.mjs'), programOf('// agent.mjs'))
  const lines = example.trim().split('\n')
  // Its key first, as the document has it.
  const { out } = await shell(
    `${lines[1]}\nopenssl pkey -in key.pem -pubout -outform DER | tail -c 32 | base64`,
  )
  const x = out.trim().replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
  const instead = [['https://agent.example/identity.json', agent]] as const
  server.serveJson(
    '/identity.json',
    JSON.parse(document!.text.replace(instead[0][0], agent).replace('the public key', x)),
  )
  const answered = await shell(`${lines[0]}\n${lines[2]}`, { instead })
  assert.match(answered.out, /^200 \{"agents":/m)
}

async function listensToEvents({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /^retry: \d+$/m)
  assert.match(out, /^\{"events":\[/m)
}

/** The one that is sent, to be verified. */
let delivery: { readonly secret: string; readonly body: Buffer; readonly headers: object } | null = null

async function postsWebhooks({ t, shell }: Bench, example: string): Promise<void> {
  const receiver = await Receiver.start(t)
  const at = example.indexOf('curl -X POST')
  const made = await shell(example.slice(0, at), {
    instead: [['https://hooks.example.com/gatehouse', `${receiver.url}/gatehouse`]],
  })
  const { id, secret } = made.json[0].webhook ?? made.json[0]
  await shell(example.slice(at), { instead: [['whk_…', id]] })
  delivery = { secret, ...(await receiver.next()) }
}

async function verifiesAWebhook({ folder }: Bench, example: string): Promise<void> {
  const { secret, body, headers } = delivery!
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  for (const library of ['standardwebhooks', 'svix']) {
    const file = join(folder, `${library}.mjs`)
    const verify = example.replace("'standardwebhooks'", `'${library}'`).replace('whsec_…', secret)
    writeFileSync(file, verify.replace('new Webhook', 'export const check = (body, headers) => new Webhook'))
    const { check } = await import(file)
    check(body.toString(), headers)
    assert.throws(() => check(`${body} `, headers))
  }
}

async function isAnMcpServer({ gate, folder }: Bench, example: string): Promise<void> {
  const { url, headers, type } = JSON.parse(example).servers.gatehouse
  assert.equal(type, 'http')
  const authorization = headers.Authorization.replace(/\$\{input:gatehouse-key\}/, keyIn(folder, 'key'))
  const response = await fetch(url.replace('https://gate.example.com', gate.manage), {
    method: 'POST',
    headers: {
      authorization,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(INITIALIZE),
  })
  assert.match(await response.text(), /"serverInfo"/)
}

async function isStartedByAnMcpClient({ gate, folder, shell }: Bench, example: string): Promise<void> {
  const { command, args } = JSON.parse(example).mcpServers.gatehouse
  const given = args.map((each: string) =>
    each.replace('http://127.0.0.1:9080', gate.manage).replace('/home/me', folder),
  )
  const { json } = await shell([command, ...given].join(' '), { input: `${JSON.stringify(INITIALIZE)}\n` })
  assert.ok(json[0].result.serverInfo)
}

async function callsATool({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /gptbot/)
}

async function sendsMessages({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /gptbot/)
  assert.match(out, /TASK_STATE_COMPLETED/)
}

async function analyzes({ t, folder, gate, shell }: Bench, example: string): Promise<void> {
  const [sample, live] = example.trim().split('\n') as [string, string]
  assert.match((await shell(sample)).out, /GET \/cart\?id=7/)
  if (noCapture()) return t.comment(`not captured: ${noCapture()}`)
  const port = String(gate.ready['listen']).split(':').at(-1)
  // Until it has seen it: a capture takes a moment to begin.
  const asking = `for _ in $(seq 20); do sleep 0.2; command curl -sk https://localhost:${port}/ > /dev/null; done`
  const { out } = await shell(`(${asking}) & timeout 5 bash -c "$LIVE" || true\nwait`, {
    variables: {
      LIVE: live.replace('npm run -s gatehouse --', 'gatehouse').replaceAll('port 443', `port ${port}`),
    },
  })
  assert.match(out, /t13d/, folder)
}

async function printsLinesLikeThese({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell('gatehouse analyze --json test/captures/sample.pcapng')
  alike(example, out.split('\n'))
}

async function evaluates({ folder, shell }: Bench, example: string): Promise<void> {
  const lines = readFileSync('test/classify/recorded.jsonl', 'utf8').split('\n')
  // Fitting takes its time.
  writeFileSync(join(folder, 'yours.jsonl'), lines.filter((_, at) => at % 10 === 0).join('\n'))
  const { out } = await shell(example)
  assert.match(out, /^llm-sdk /m)
  assert.ok(JSON.parse(readFileSync(join(folder, 'weights.json'), 'utf8')))
}

async function printsTheTable({ t, shell }: Bench, example: string, argv: readonly string[]): Promise<void> {
  if (!existsSync(CORPUS)) return t.comment(`not compared: ${CORPUS} is not there`)
  const files = `${resolve('test/classify/recorded.jsonl')} ${resolve(CORPUS)}`
  const { out } = await shell(`gatehouse evaluate ${files} ${argv.join(' ')}`)
  assert.ok(out.includes(example), `README.md has\n${example}\nand it is\n${out.slice(0, 3_000)}`)
}

async function records({ folder, shell }: Bench, example: string): Promise<void> {
  const [first, second] = example.trim().split('\n') as [string, string]
  const port = await freePort()
  const asking = `(until command curl -sk --http2 https://localhost:${port}/; do sleep 0.1; done) & `
  await shell(`${asking}${first} --listen 127.0.0.1:${port}\nwait`)
  assert.equal(JSON.parse(readFileSync(join(folder, 'curl.jsonl'), 'utf8')).client, 'curl')
  await shell(`${second} --listen 127.0.0.1:0`, { instead: [['--seconds 600', '--seconds 1']] })
  assert.ok(existsSync(join(folder, 'app.jsonl')))
}

function recordsLinesLikeThese({ folder }: Bench, example: string): void {
  const said = JSON.parse(example.replace(',…]', ']').replaceAll(',…', ''))
  const row = JSON.parse(readFileSync(join(folder, 'curl.jsonl'), 'utf8'))
  assert.deepEqual(Object.keys(row), Object.keys(said))
  assert.deepEqual(Object.keys(row.requests[0]), Object.keys(said.requests[0]))
  assert.deepEqual([row.client, row.label, row.alpn], [said.client, said.label, said.alpn])
}

async function signsAndVerifies(bench: Bench, example: string): Promise<void> {
  const port = await freePort()
  // It takes a moment before it answers.
  const [key, directory, ...rest] = example
    .replaceAll('127.0.0.1:7000', `127.0.0.1:${port}`)
    .trim()
    .split('\n')
  const waiting = `until (echo > /dev/tcp/127.0.0.1/${port}) 2> /dev/null; do sleep 0.1; done`
  const { out } = await bench.shell([key, directory, waiting, ...rest, 'kill %1'].join('\n'))
  bench.verified = out.replaceAll(`127.0.0.1:${port}`, '127.0.0.1:7000')
  assert.match(out, /^proven: /m)
}

/** What is checked, and how it ends. */
function steps(said: string): readonly string[] {
  return said
    .split('\n')
    .filter((line) => /^(?:ok|no|--) |^proven/.test(line))
    .map((line) => (line.startsWith('proven') ? line : line.slice(0, 15).trim()))
}

/** Each line of JSON is there, but for what stands as `…`. */
function alike(example: string, lines: readonly string[]): void {
  for (const line of example.trim().split('\n')) {
    const said = JSON.parse(line)
    const found = lines
      .filter((each) => each.startsWith('{'))
      .map((each) => JSON.parse(each))
      .find(({ kind, frame }) => kind === said.kind && frame === said.frame)
    assert.ok(found, `${said.kind} in frame ${said.frame}`)
    assert.deepEqual(Object.keys(found), Object.keys(said))
    for (const [name, value] of Object.entries(said))
      if (!JSON.stringify(value).includes('…')) assert.deepEqual(found[name], value, name)
  }
}

function programOf(mark: string): string {
  return examples().find(({ text }) => text.startsWith(mark))!.text
}

function keyIn(folder: string, name: string): string {
  return readFileSync(join(folder, name), 'utf8').trim()
}

function endGroup({ pid }: ChildProcess): void {
  try {
    process.kill(-pid!, 'SIGKILL')
  } catch {
    // All of it has ended.
  }
}

const CORPUS = '../shared/corpus/clients.jsonl'
/** As its reader would see it: what is refused is no success, each answer is a line, and a stream is left after a while. */
const CURL = `curl() {
  local ended=0
  case " $* " in *" -N "*) set -- --max-time 3 "$@" ;; esac
  command curl -sS --fail-with-body -w '\\n' "$@" || ended=$?
  [ "$ended" = 0 ] || [ "$ended" = 28 ]
}`
const INITIALIZE = {
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'reader', version: '1' } },
}
