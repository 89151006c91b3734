import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { apiPlace, KubernetesApi } from '../../src/inject/kubernetes-api.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { FakeApiServer, SECRET } from './fake-api-server.ts'

test('where it is, as each container is told', async () => {
  const at = (env: Record<string, string>) => apiPlace(env, '/sa')
  assert.deepEqual(at({ KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }), {
    host: 'fd00::1',
    port: 443,
    folder: '/sa',
  })
  const ports = { KUBERNETES_SERVICE_PORT: '1', KUBERNETES_SERVICE_PORT_HTTPS: '6443' }
  assert.equal(at({ KUBERNETES_SERVICE_HOST: '10.0.0.1', ...ports }).port, 6443)
  for (const env of [{}, { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, { KUBERNETES_SERVICE_PORT: '443' }])
    assert.throws(() => at(env), { code: 'NO_KUBERNETES', message: /inject\.tls\.cert_file$/ })
})

test('statuses that mean something are answers; the rest are Faults that name what was asked', async (t) => {
  const server = await FakeApiServer.start(t, temporaryFolder(t))
  const api = new KubernetesApi(server.place)
  assert.equal(await api.namespace(), 'gate')
  assert.equal((await api.get(SECRET)).status, 404)
  server.intercept = () => ({
    status: 403,
    body: JSON.stringify({ message: `secrets is forbidden ${'x'.repeat(1000)}` }),
  })
  await assert.rejects(api.get(SECRET), ({ code, message }: { code: string; message: string }) => {
    assert.equal(code, 'KUBERNETES_REFUSED')
    assert.ok(message.startsWith(`GET ${SECRET}: 403 secrets is forbidden x`) && message.length < 500)
    return true
  })
  const quoting = JSON.stringify({ message: 'invalid: data.key: c2VjcmV0', reason: 'BadRequest' })
  server.intercept = () => ({ status: 400, body: quoting })
  await assert.rejects(api.create(SECRET, {}), { message: `POST ${SECRET}: 400 BadRequest` })
  server.intercept = () => ({ status: 301, body: '<html>' })
  await assert.rejects(api.get(SECRET), { message: `GET ${SECRET}: 301 ` }, 'redirects are not followed')
  server.intercept = () => ({ status: 200, body: '<html>' })
  await assert.rejects(api.get(SECRET), { message: 'an answer with status 200 is not valid JSON' })
  server.intercept = () => ({ status: 200, body: `"${'x'.repeat(5 * 1024 * 1024)}"` })
  await assert.rejects(api.get(SECRET), { message: /^an answer has more than \d+ bytes$/ })
})

test('a token that has changed is taken at the next request; without one nothing is asked', async (t) => {
  const folder = temporaryFolder(t)
  const server = await FakeApiServer.start(t, folder)
  const api = new KubernetesApi(server.place)
  server.useToken('token-2')
  assert.equal((await api.get(SECRET)).status, 404)
  server.token = 'token-3'
  await assert.rejects(api.get(SECRET), { message: `GET ${SECRET}: 401 Unauthorized` })
  rmSync(join(folder, 'token'))
  server.asked.length = 0
  await assert.rejects(api.get(SECRET), {
    code: 'SERVICE_ACCOUNT_UNREADABLE',
    message: /token cannot be read \(ENOENT\)$/,
  })
  assert.deepEqual(server.asked, [])
})

test('an API server that does not answer, is not there, or is another server', async (t) => {
  const server = await FakeApiServer.start(t, temporaryFolder(t))
  server.pauseMs = 60_000
  const patient = new KubernetesApi(server.place, 50)
  await assert.rejects(patient.create(SECRET, {}), {
    code: 'KUBERNETES_UNREACHABLE',
    message: `POST ${SECRET}: no answer in time`,
  })
  const other = await FakeApiServer.start(t, temporaryFolder(t))
  const deceived = new KubernetesApi({ ...server.place, port: other.port })
  await assert.rejects(deceived.get(SECRET), { code: 'KUBERNETES_UNREACHABLE' })
  assert.deepEqual(other.asked, [], 'no token was sent to it')
  const alone = new KubernetesApi({ ...server.place, port: 1 })
  await assert.rejects(alone.get(SECRET), { message: `GET ${SECRET}: ECONNREFUSED` })
})
