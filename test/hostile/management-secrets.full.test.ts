import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { isSecret, variablesOf } from '../../src/config/layers.ts'
import { SETTINGS } from '../../src/config/schema.ts'
import { VERSIONS } from '../../src/manage/api/operations.ts'
import { startApp } from '../e2e/app.ts'
import { startGatehouse } from '../e2e/gatehouse.ts'
import { GATEHOUSE, plainEnvironment, run, temporaryFolder } from '../e2e/programs.ts'
import { basic, postForm } from '../manage/oauth-client.ts'
import { bodyFor } from './management-estate.ts'
import { IS_WHOLE } from './whole.ts'
import { allProcesses } from '../processes.ts'

/** Each setting that is a secret, with one that is known again wherever it turns up. */
const CONFIGURED = new Map(
  [...variablesOf(SETTINGS.members)]
    // store.encryption_key is short for store.encryption_keys: one of them.
    .filter(([variable, { item }]) => isSecret(item) && variable !== 'GATEHOUSE_STORE_ENCRYPTION_KEY')
    .map(([variable]) => [variable, newSecret()] as const),
)
/** With what belongs to some of them. */
const ENVIRONMENT = {
  ...Object.fromEntries(CONFIGURED),
  GATEHOUSE_PAYMENTS_LICENSE_CLIENT_ID: 'gate',
  GATEHOUSE_PAYMENTS_LICENSE_INTROSPECTION: 'https://licenses.example/introspect',
}

test('what is secret is in nothing that a running gateway says, sends or leaves behind', async (t) => {
  const secrets = new Map([...CONFIGURED, ['a cookie', newSecret()], ['a password', newSecret()]])
  const [traces, hooks] = [await listener(t), await listener(t)]
  const data = temporaryFolder(t)
  const reports = temporaryFolder(t)
  const { url: upstream } = await startApp(t)
  const gate = await startGatehouse(t, {
    ...{ command: 'up', upstream, argv: ['--workers', '1', '--data', data] },
    variables: {
      ...ENVIRONMENT,
      ...{
        GATEHOUSE_LOG_LEVEL: 'debug',
        GATEHOUSE_MANAGE_ACCESS_LOG: 'true',
      },
      ...{ GATEHOUSE_TRACING_ENDPOINT: `${traces.url}/v1/traces`, GATEHOUSE_TRACING_SAMPLE: '1' },
      GATEHOUSE_WEBHOOKS_ALLOW_PRIVATE_ADDRESSES: 'true',
      NODE_OPTIONS: `--report-on-signal --report-signal=SIGUSR2 --report-directory=${reports}`,
    },
  })
  const admin = { authorization: `Bearer ${CONFIGURED.get('GATEHOUSE_ADMIN_KEY')}` }
  const answers: { readonly about: string; readonly text: string }[] = []
  const ask = async (
    method: string,
    path: string,
    body: unknown = null,
    headers: Record<string, string> = admin,
  ) => {
    const response = await fetch(gate.manage + path, {
      ...{ method, headers: { accept: 'application/json', 'content-type': 'application/json', ...headers } },
      ...(body === null ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const given = await response.text()
    const head = JSON.stringify([...response.headers])
    return {
      about: `${method} ${path.slice(0, 60)}: ${response.status}`,
      status: response.status,
      text: given,
      head,
    }
  }
  const keep = async (...asked: Parameters<typeof ask>) => {
    const { about, text: given, head } = await ask(...asked)
    answers.push({ about, text: head + given })
  }
  /** The one answer that has it. */
  const given = async (
    name: string,
    member: string,
    path: string,
    body: unknown,
  ): Promise<Record<string, string>> => {
    const answered = await ask('POST', path, body, { ...admin, 'idempotency-key': name.replaceAll(' ', '-') })
    assert.ok(answered.status < 300, answered.text)
    const made = JSON.parse(answered.text)
    assert.ok(made[member] !== undefined, answered.text)
    secrets.set(name, made[member])
    answers.push({ about: `${name}, its headers`, text: answered.head })
    return made
  }

  const { key } = await given('an API key', 'key', '/v1/keys', { name: 'x', access: 'write' })
  const client = await given('a client secret', 'client_secret', '/v1/clients', CLIENT)
  const hook = { url: `${hooks.url}/hook`, events: ['new_agent', 'new_signature'] }
  const webhook = await given('a webhook secret', 'secret', '/v1/webhooks', hook)
  await given('a new webhook secret', 'secret', `/v1/webhooks/${webhook['id']}/rotate`, null)
  const task = { type: 'detect', items: [{ user_agent: 'x' }], callback_url: `${hooks.url}/task` }
  await given('a callback secret', 'callback_secret', '/v1/tasks/create', task)
  const form = { grant_type: 'client_credentials' }
  const token = await postForm(gate.manage, '/oauth/token', form, basic(client as never))
  assert.equal(token.status, 200, token.text)
  secrets.set('an access token', token.body.access_token)
  const password = secrets.get('a password')!
  const user = { email: 'anna@example.com', password, scopes: ['read'] }
  await keep('POST', '/v1/users', user)
  await keep('POST', `/v1/webhooks/${webhook['id']}/test`)

  // Whatever is done, and whatever goes wrong with it.
  for (const { prefix, operations } of IS_WHOLE ? VERSIONS : VERSIONS.slice(0, 1))
    for (const operation of operations) {
      const path = prefix + operation.path.replaceAll(/\{\w+\}/g, webhook['id']!)
      if (operation.method === 'DELETE' || operation.id === 'updateSettings') continue
      if (!HAS_SECRET.has(operation.id)) await keep(operation.method, path, bodyFor(operation))
      await keep(operation.method, path, bodyFor(operation), { authorization: `Bearer ${key}` })
      await keep(operation.method, path, bodyFor(operation), {
        authorization: `Bearer ${token.body.access_token}`,
      })
      if (operation.method === 'GET') continue
      await keep(operation.method, path, `{"password": "${password}`, { authorization: `Bearer ${password}` })
      if (operation.body !== null) await keep(operation.method, path, { ...user, nonsense: 1 })
    }
  for (const wrong of [`Bearer ${key}x`, `Basic ${btoa(`x:${password}`)}`, `DPoP ${key}`, `GNAP ${key}`])
    await keep('GET', '/v1/me', null, { authorization: wrong })
  for (const path of [
    '/oauth/token',
    '/oauth/register',
    '/oauth/revoke',
    '/gnap/grant',
    '/mcp',
    '/a2a',
    '/account',
  ])
    await keep('POST', path, { client_secret: password, token: key, password })
  const cookie = secrets.get('a cookie')!
  const sent = request(`${gate.url}/x`, {
    ca: gate.ca,
    headers: { cookie: `s=${cookie}`, authorization: `Bearer ${cookie}` },
  }).end()
  const [response] = await once(sent, 'response')
  response.resume()
  await hooks.has(2)
  await traces.has(1)
  process.kill(gate.pid, 'SIGUSR2')
  const report = await until(() => globSync('*.json', { cwd: reports })[0], 'a report')
  const processes = allProcesses().map(({ command }) => command)
  const metrics = await (await fetch(`${gate.manage}/metrics`)).text()
  const backup = join(data, 'copy.db')
  const copied = await command(data, 'backup', backup, '--data', data, NO_PASSPHRASE)
  assert.match(copied, /a copy of/)
  await gate.stop()

  const places: { readonly about: string; readonly text: string }[] = [
    ...answers,
    { about: 'the log', text: gate.said() },
    { about: 'the metrics', text: metrics },
    { about: 'the arguments of processes', text: processes.join('\n') },
    { about: 'a diagnostic report', text: readFileSync(join(reports, report), 'latin1') },
    { about: 'what backup says', text: copied },
    { about: 'a backup', text: readFileSync(backup, 'latin1') },
    ...globSync('**/*', { cwd: data, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => ({ about: name, text: readFileSync(join(parentPath, name), 'latin1') })),
    ...[...traces.all, ...hooks.all].map(({ about, body }) => ({ about, text: body })),
  ]
  assert.ok(gate.said().length > 10_000 && traces.all.length > 0 && hooks.all.length > 1)
  assert.deepEqual(leaksIn(places, secrets), [])
})

test('what is secret is in nothing that check and doctor say, whether all is well or not', async (t) => {
  const folder = temporaryFolder(t)
  const places: { readonly about: string; readonly text: string }[] = []
  for (const [name, more] of [
    ['as it is', NO_PASSPHRASE],
    ['wrong', { GATEHOUSE_LISTEN: 'nonsense', GATEHOUSE_STORE_URL: 'postgres://gatehouse@127.0.0.1:1/x' }],
    [
      'elsewhere',
      {
        ...NO_PASSPHRASE,
        GATEHOUSE_STORE_URL: 'postgres://gatehouse@127.0.0.1:1/x',
        GATEHOUSE_BUS_URL: 'nats://127.0.0.1:1',
      },
    ],
  ] as const)
    for (const argv of [['check', '--json'], ['doctor']]) {
      const given = [...argv, '--upstream', 'http://127.0.0.1:9', '--data', folder, '--manage', '127.0.0.1:0']
      const said = await command(folder, ...given, more)
      assert.ok(said.length > 50, `${argv}: ${said}`)
      places.push({ about: `${argv.join(' ')}, ${name}`, text: said })
    }
  assert.deepEqual(leaksIn(places, CONFIGURED), [])
})

test('what looks for secrets finds them, however they are written', async () => {
  const secret = newSecret()
  const forms = [secret, encodeURIComponent(secret), Buffer.from(secret).toString('hex')]
  for (const before of ['', 'x', 'xy'])
    for (const coding of ['base64', 'base64url'] as const)
      forms.push(Buffer.from(`${before}${secret}yz`).toString(coding))
  for (const form of forms)
    assert.equal(leaksIn([{ about: 'x', text: `a${form}b` }], new Map([['it', secret]])).length, 1, form)
})

/** Of which secret, where. */
function leaksIn(
  places: readonly { readonly about: string; readonly text: string }[],
  secrets: ReadonlyMap<string, string>,
): readonly string[] {
  const wanted = [...secrets].flatMap(([name, secret]) => formsOf(secret).map((form) => ({ name, form })))
  return places.flatMap(({ about, text: said }) =>
    wanted.filter(({ form }) => said.includes(form)).map(({ name }) => `${name} is in ${about}`),
  )
}

/** As it may be written: plain, in percent, in hex, and in base64 wherever in a text it begins. */
function formsOf(secret: string): readonly string[] {
  const inBase64 = [0, 1, 2].map((skipped) => {
    const whole = Buffer.from('x'.repeat(skipped) + secret)
      .toString('base64')
      .replaceAll('=', '')
    // What the characters at its ends are depends on what is beside it.
    return whole.slice(skipped === 0 ? 0 : 4, Math.floor(whole.length / 4) * 4 - 4)
  })
  const url = inBase64.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))
  const hex = Buffer.from(secret).toString('hex')
  return [...new Set([secret, encodeURIComponent(secret), hex, hex.toUpperCase(), ...inBase64, ...url])]
}

/** Neither a number nor a word: nothing else has it. */
function newSecret(): string {
  return `secret/${randomBytes(24).toString('base64url')}+end`
}

/** Another command, told the same secrets. What it says, whatever it ends with. */
async function command(folder: string, ...given: readonly (string | NodeJS.ProcessEnv)[]): Promise<string> {
  const argv = given.filter((each) => typeof each === 'string')
  const more = given.find((each) => typeof each !== 'string') ?? {}
  const env = plainEnvironment(folder, { ...ENVIRONMENT, ...more })
  const { stdout, stderr } = await run(process.execPath, [GATEHOUSE, ...argv], { env })
  return stdout + stderr
}

/** Without the certificate that it is for it is a mistake. */
const NO_PASSPHRASE = { GATEHOUSE_PROXY_TLS_KEY_PASSPHRASE: undefined }

interface Listener {
  readonly url: string
  readonly all: readonly { readonly about: string; readonly body: string }[]
  has(count: number): Promise<void>
}

/** Keeps the bodies, but not the headers: those have what their receiver has to have. */
async function listener(t: Test): Promise<Listener> {
  const all: { about: string; body: string }[] = []
  const server = createServer(async (request, response) => {
    all.push({ about: `sent to ${request.url}`, body: await text(request) })
    response.setHeader('content-type', 'application/json').end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const has = (count: number) => until(() => all.length >= count, `${count} requests`)
  return { url: `http://127.0.0.1:${port}`, all, has: async (count) => void (await has(count)) }
}

async function until<Value>(look: () => Value, what: string): Promise<NonNullable<Value>> {
  for (let times = 0; times < 600; times++) {
    const found = look()
    if (found) return found
    await wait(50)
  }
  throw new Error(`there is never ${what}`)
}

const CLIENT = { name: 'x', grant_types: ['client_credentials'], scopes: ['read'] }
/** Operations whose answer has a secret, each tried above. */
const HAS_SECRET = new Set(['createKey', 'createClient', 'createWebhook', 'rotateWebhookSecret'])
