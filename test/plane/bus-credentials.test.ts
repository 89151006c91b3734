import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { nkeys } from '@nats-io/transport-node'
import { type Test, test } from 'tap'
import { BusCredentialPart } from '../../src/runtime/credential-parts.ts'
import { Reloader } from '../../src/runtime/reload.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { JetStreamManageBus, JetStreamProxyBus } from '../../src/plane/jetstream/jetstream-bus.ts'
import { type BusSettings, JetStreamConnection } from '../../src/plane/jetstream/jetstream-connection.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { sighting, until } from '../contract/bus.ts'
import { folderFor } from '../e2e/engines.ts'
import { MountedSecret } from '../e2e/mounted-secret.ts'
import { skipped } from '../e2e/programs.ts'
import { testCa, testLeaf, testRsa } from '../proxy/test-certificates.ts'
import { GuardedNats } from './guarded-nats.ts'

const needsNats = { skip: skipped('nats-server') }

test(
  'user and password change while Sightings go: none that was acknowledged is lost',
  needsNats,
  async (t) => {
    const users = (...pairs: readonly string[]) =>
      `jetstream: {store_dir: "{store}"}\nauthorization { users: [${pairs.map((pair) => `{user: ${pair.split(' ')[0]}, password: ${pair.split(' ')[1]}}`).join(', ')}] }`
    const nats = await GuardedNats.start(t, users('old one', 'new two'))
    const secret = new MountedSecret(join(folderFor(t, 'secret'), 'mounted'), {
      user: 'old',
      password: 'one',
    })
    const { settings, log, said } = place(nats, {
      secretFiles: { user: secret.file('user'), password: secret.file('password'), token: null },
    })
    const options = { sightingsBytesMax: 16 * 1024 ** 2, replicas: 1, spreadMs: 20, askMs: 500 }
    const manage = new JetStreamManageBus(
      settings,
      { ...options, folder: folderFor(t, 'manage'), mayPublish: async () => true },
      log,
    )
    const proxy = new JetStreamProxyBus(settings, 'p', { ...options, folder: folderFor(t, 'proxy') }, log)
    t.teardown(() => Promise.all([manage.closed(), proxy.closed()]))
    const stored = new Set<string>()
    manage.onSightings((batch: readonly Sighting[]) => {
      for (const { id } of batch) stored.add(id)
    })
    await until(() => manage.connection.isUp && proxy.connection.isUp)
    const acknowledged: string[] = []
    let number = 0
    let isOver = false
    const sending = (async () => {
      while (!isOver) {
        const one = sighting(++number)
        // Like the proxy: a batch that NATS did not acknowledge is sent again.
        while (!isOver) {
          const isTaken = await proxy.sendSightings([one]).then(
            () => true,
            () => false,
          )
          if (isTaken) acknowledged.push(one.id)
          if (isTaken) break
          await wait(5)
        }
      }
    })()
    const someMore = async () => {
      const count = acknowledged.length
      await until(() => acknowledged.length >= count + 20)
    }
    const reloaders = await Promise.all(
      [manage, proxy].map(async ({ connection }) => {
        const { reloader } = await Reloader.load(new BusCredentialPart(settings, connection), log)
        return reloader
      }),
    )
    const look = () => Promise.all(reloaders.map((reloader) => reloader.check(false)))
    await someMore()

    // Wrong: the connections stay, and it is said once.
    secret.swap({ user: 'new', password: 'guess' })
    for (let i = 0; i < 3; i++) await look()
    assert.deepEqual(
      reloaders.map(({ status }) => status.isCurrent),
      [false, false],
    )
    assert.equal(said().match(/does not take the new credentials/g)?.length, 2, 'each says it once')
    assert.match(said(), /Compare the files of bus\.\* with what the server knows/)
    await someMore()
    await nats.untilUsers(['old', 'old'])

    // The server is lost meanwhile: what opened it before opens it again.
    await nats.restart()
    await until(() => manage.connection.isUp && proxy.connection.isUp)
    await someMore()

    secret.swap({ user: 'new', password: 'two' })
    await look()
    await until(() => manage.connection.isUp && proxy.connection.isUp)
    assert.deepEqual(
      reloaders.map(({ status }) => status.isCurrent),
      [true, true],
    )
    await someMore()
    await nats.untilUsers(['new', 'new'])

    // The server has another password first, and lets go of everybody.
    nats.reload(users('new three'))
    await until(() => !proxy.connection.isUp)
    secret.swap({ user: 'new', password: 'three' })
    await until(() => manage.connection.isUp && proxy.connection.isUp)
    await look()
    await someMore()
    isOver = true
    await sending
    await until(() => acknowledged.every((id) => stored.has(id)))
    for (const word of ['one', 'two', 'three', 'guess']) assert.ok(!said().includes(`"${word}`), word)
  },
)

test('a token, and a credentials file, are read again when they change', needsNats, async (t) => {
  const secret = new MountedSecret(join(folderFor(t, 'secret'), 'mounted'), { token: 'one' })
  const nats = await GuardedNats.start(t, 'authorization { token: "one" }')
  const files = { secretFiles: { user: null, password: null, token: secret.file('token') } }
  const { connection } = await connected(t, nats, files)
  nats.reload('authorization { token: "two" }')
  await until(() => !connection.isUp)
  secret.swap({ token: 'two\n' })
  await until(() => connection.isUp)

  const { config, credsOf } = operator()
  const jwt = await GuardedNats.start(t, config)
  const [first, second] = [credsOf('first'), credsOf('second')]
  const mounted = new MountedSecret(join(folderFor(t, 'creds'), 'mounted'), { 'nats.creds': first.text })
  const byFile = await connected(t, jwt, { credentialsFile: mounted.file('nats.creds') })
  await jwt.untilUsers([first.user])
  mounted.swap({ 'nats.creds': 'nothing that could be one' })
  await byFile.reloader.check(false)
  assert.equal(byFile.reloader.status.isCurrent, false)
  await jwt.untilUsers([first.user])
  mounted.swap({ 'nats.creds': second.text })
  await byFile.reloader.check(false)
  await until(() => byFile.connection.isUp)
  assert.equal(byFile.reloader.status.isCurrent, true)
  await jwt.untilUsers([second.user])
  assert.ok(!byFile.said().includes('SU'), 'no seed is said')
})

test('certificate, key and CA of TLS are read again when they change', needsNats, async (t) => {
  const [oldCa, newCa] = [await testCa(), await testCa()]
  const [old, next] = [testRsa(['old.example.test']), testRsa(['new.example.test'])]
  const folder = folderFor(t, 'tls')
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const server = await testLeaf(oldCa, ['localhost'])
  const lines = (certificate: string, key: string) =>
    `tls { cert_file: "${file('server.crt', certificate)}", key_file: "${file('server.key', key)}", ca_file: "${file('clients.crt', old.certificate + next.certificate)}", verify_and_map: true }
     authorization { users: [{user: "old.example.test"}, {user: "new.example.test"}] }`
  const nats = await GuardedNats.start(t, lines(server.certificate, server.key))
  const content = (ca: string, leaf: typeof old) => ({
    'ca.crt': ca,
    'tls.crt': leaf.certificate,
    'tls.key': leaf.key,
  })
  const secret = new MountedSecret(join(folderFor(t, 'secret'), 'mounted'), content(oldCa.certificate, old))
  const tls = {
    caFile: secret.file('ca.crt'),
    certificateFile: secret.file('tls.crt'),
    keyFile: secret.file('tls.key'),
  }
  const { connection, reloader, said } = await connected(t, nats, {
    urls: [`tls://localhost:${nats.port}`],
    tls,
  })
  await nats.untilUsers(['old.example.test'])
  secret.swap({ ...content(oldCa.certificate, next), 'tls.key': old.key })
  await reloader.check(false)
  assert.match(said(), /The key has to be that of the certificate/)
  secret.swap(content(newCa.certificate, next))
  await reloader.check(false)
  assert.equal(reloader.status.isCurrent, false, 'the server has a certificate of the old CA still')
  assert.ok(connection.isUp)
  secret.swap(content(oldCa.certificate + newCa.certificate, next))
  await reloader.check(false)
  await until(() => connection.isUp)
  assert.equal(reloader.status.isCurrent, true)
  await nats.untilUsers(['new.example.test'])
  assert.ok(!said().includes('PRIVATE KEY'))
})

async function connected(t: Test, nats: GuardedNats, changes: Partial<BusSettings>) {
  const { settings, log, said } = place(nats, changes)
  const connection = new JetStreamConnection(settings, 'proxy', log)
  t.teardown(() => connection.close())
  await until(() => connection.isUp)
  const { reloader } = await Reloader.load(new BusCredentialPart(settings, connection), log)
  return { connection, reloader, said }
}

function place(nats: GuardedNats, changes: Partial<BusSettings>) {
  const lines: string[] = []
  const log = createLogTo('info', { write: (line) => void lines.push(line) })
  const settings: BusSettings = {
    ...{ urls: [`nats://127.0.0.1:${nats.port}`], name: 'gatehouse', retryMs: 50 },
    ...{ credentialsFile: null, user: null, password: null, token: null },
    tls: { caFile: null, certificateFile: null, keyFile: null },
    ...changes,
  }
  return { settings, log, said: () => lines.join('') }
}

/** Of a server whose users have JWTs: an operator, an account, and credentials files. */
function operator() {
  const [top, account] = [nkeys.createOperator(), nkeys.createAccount()]
  const jwtOf = (subject: string, type: string, more: object, by = top) => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = {
      jti: subject,
      iat: Math.floor(Date.now() / 1_000),
      iss: by.getPublicKey(),
      sub: subject,
      name: type,
    }
    const signed = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part({ ...claims, nats: { ...more, type, version: 2 } })}`
    return `${signed}.${Buffer.from(by.sign(Buffer.from(signed))).toString('base64url')}`
  }
  const limits = {
    subs: -1,
    data: -1,
    payload: -1,
    imports: -1,
    exports: -1,
    conn: -1,
    leaf: -1,
    wildcards: true,
  }
  const accountJwt = jwtOf(account.getPublicKey(), 'account', { limits })
  const config = `operator: ${jwtOf(top.getPublicKey(), 'operator', {})}
resolver: MEMORY
resolver_preload: { ${account.getPublicKey()}: ${accountJwt} }`
  const credsOf = (_: string) => {
    const user = nkeys.createUser()
    const jwt = jwtOf(user.getPublicKey(), 'user', { subs: -1, data: -1, payload: -1 }, account)
    const seed = Buffer.from(user.getSeed()).toString('latin1')
    const text = `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`
    return { user: user.getPublicKey(), text }
  }
  return { config, credsOf }
}
