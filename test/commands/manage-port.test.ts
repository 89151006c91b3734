import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { connect as connectPlain } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import { once } from 'node:events'
import { type Test, test } from 'tap'
import type { MadeCertificate } from '../../src/proxy/tls/certificate-maker.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'
import { start } from './gateway-process.ts'

const KEY = 'a key of an administrator, for this test alone'

test('the management port speaks TLS, and changes its certificate without a restart', async (t) => {
  const ca = await testCa()
  const { folder, renew } = await folderWith(t, ca)
  const gateway = await start(t, folder)
  const get = (path: string, headers = {}) => ask(gateway.manage, ca.certificate, path, headers)
  assert.equal((await get('/health/live')).status, 200)
  const document = JSON.parse((await get('/v1/openapi.json')).body || '{}')
  assert.equal(document.servers, undefined, 'proxy has no API')
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
    assert.equal((await handshake(gateway.manage, ca.certificate, version)).protocol, version)
  await assert.rejects(handshake(gateway.manage, ca.certificate, 'TLSv1.1'))
  const before = (await handshake(gateway.manage, ca.certificate, 'TLSv1.3')).serial
  await renew()
  gateway.hangUp()
  while ((await handshake(gateway.manage, ca.certificate, 'TLSv1.3')).serial === before) await wait(50)
  const [host, port] = gateway.manage.split(':') as [string, string]
  const plain = connectPlain(Number(port), host)
  plain.end('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n')
  assert.doesNotMatch(await text(plain).catch(() => ''), /live/)
  assert.ok((await get('/metrics')).body.includes('gatehouse_certificate_not_after_timestamp_seconds'))
  await gateway.stop()
})

test('the port says what it does: metrics by operation, and lines where they are wanted', async (t) => {
  const { folder } = await folderWith(t, null)
  const gateway = await start(t, folder, 'up')
  const get = (path: string, key = KEY) =>
    fetch(`http://${gateway.manage}${path}`, { headers: { authorization: `Bearer ${key}` } })
  while ((await get('/v1/keys')).status === 503) await wait(50)
  const document = (await (await get('/v1/openapi.json')).json()) as { servers: { url: string }[] }
  assert.equal(document.servers[0]!.url, `http://${gateway.manage}/v1`)
  assert.equal((await get('/v1/keys?limit=2')).status, 200)
  assert.equal((await get('/v1/keys', 'a wrong one, and secret')).status, 401)
  assert.equal((await get('/v1/nothing?secret=42')).status, 404)
  const metrics = await (await get('/metrics')).text()
  const value = (name: string) => Number(new RegExp(`^gatehouse_${name} (\\d+)$`, 'm').exec(metrics)?.[1])
  assert.ok(value('manage_requests_total\\{operation="listKeys",status="2xx"\\}') >= 1)
  assert.equal(value('manage_requests_total\\{operation="none",status="4xx"\\}'), 2)
  assert.equal(value('manage_requests_total\\{operation="document",status="2xx"\\}'), 1)
  assert.equal(value('manage_problems_total\\{code="not_found"\\}'), 1)
  assert.ok(value('manage_request_duration_seconds_count') >= 4)
  await gateway.stop()
  const lines = gateway
    .said()
    .split('\n')
    .filter((line) => line.includes('"message":"answered"'))
    .map((line) => JSON.parse(line))
  const line = lines.find(({ path }) => path === '/v1/nothing')
  assert.deepEqual(
    [line.level, line.method, line.status, line.problem, line.principal],
    ['info', 'GET', 404, 'not_found', 'bootstrap'],
  )
  assert.ok(!lines.some(({ operation }) => operation === 'probe'))
  assert.ok(!gateway.said().includes('secret'))
  assert.ok(!gateway.said().includes(KEY))
})

/** With TLS where there is a CA. */
async function folderWith(t: Test, ca: MadeCertificate | null) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-port-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const renew = async () => {
    const leaf = await testLeaf(ca!, ['localhost'])
    writeFileSync(join(folder, 'manage.pem'), leaf.certificate + leaf.key, { mode: 0o600 })
  }
  if (ca !== null) await renew()
  const tls = ca === null ? '' : ', tls: {cert_file: manage.pem}'
  writeFileSync(
    join(folder, 'g.yaml'),
    `proxy: {upstream: "http://127.0.0.1:9", listen: "127.0.0.1:0", workers: 1}
manage: {listen: "127.0.0.1:0", admin_key: "${KEY}", access_log: true${tls}}
`,
    { mode: 0o600 },
  )
  return { folder, renew }
}

async function ask(manage: string, ca: string, path: string, headers: Readonly<Record<string, string>>) {
  const [hostname, port] = manage.split(':')
  const sent = request({ hostname, port, path, headers, ca, servername: 'localhost', agent: false }).end()
  const [response] = await once(sent, 'response')
  return { status: response.statusCode as number, body: await text(response) }
}

async function handshake(manage: string, ca: string, version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3') {
  const [host, port] = manage.split(':')
  const socket: TLSSocket = connect({
    ...{ host, port: Number(port), ca, servername: 'localhost' },
    ...{ minVersion: version, maxVersion: version, ciphers: 'DEFAULT:@SECLEVEL=0' },
  })
  await once(socket, 'secureConnect')
  const serial = socket.getPeerCertificate().serialNumber
  const protocol = socket.getProtocol()
  socket.destroy()
  return { serial, protocol }
}
