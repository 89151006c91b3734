import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request, type RequestOptions } from 'node:https'
import { connect as connectPlain, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { connect } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { InjectMetrics } from '../../src/inject/inject-metrics.ts'
import { createWebhookServer, useCertificate } from '../../src/inject/webhook-server.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { Metrics, metricsText } from '../../src/shared/metrics.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { certificateFiles } from './certificates.ts'
import { podAfter, responseIn, REVIEWS, sidecarSettings, VERSION } from './reviews.ts'

const JSON_TYPE = { 'Content-Type': 'application/json' }
const REVIEW = REVIEWS.get('deployment')!
const UID = JSON.parse(REVIEW).request.uid
const MIB = 1024 * 1024

test('a review is answered, logged without the Pod, and counted', async (t) => {
  const webhook = await serve(t)
  const { status, headers, body } = await webhook.ask('/mutate?timeout=5s', { body: REVIEW })
  assert.equal(status, 200)
  assert.equal(headers['content-type'], 'application/json')
  const after = podAfter(REVIEW, responseIn(JSON.parse(body), UID))
  assert.equal(after.spec?.initContainers?.[0]?.name, 'gatehouse')
  const [line] = webhook.said()
  const { namespace, pod, review, isDryRun } = line!
  assert.deepEqual([namespace, pod, review, isDryRun], ['shop', 'web-6d4cf56db6-', UID, false])
  await webhook.ask('/mutate', { body: REVIEWS.get('label-typo')! })
  await webhook.ask('/mutate', { body: REVIEWS.get('update')! })
  await webhook.ask('/mutate', { body: '{}' })
  const metrics = await webhook.metrics()
  for (const [outcome, count] of [
    ['patched', 1],
    ['refused', 1],
    ['unchanged', 1],
    ['malformed', 1],
    ['failed', 0],
  ])
    assert.ok(metrics.includes(`gatehouse_inject_reviews_total{outcome="${outcome}"} ${count}\n`), metrics)
  assert.ok(metrics.includes('gatehouse_inject_review_duration_seconds_count 4\n'))
})

test('a dry run is answered as the rest is, and the answer depends on nothing but the review', async (t) => {
  const webhook = await serve(t)
  const body = REVIEWS.get('dry-run')!
  const [first, second] = [await webhook.ask('/mutate', { body }), await webhook.ask('/mutate', { body })]
  assert.equal(first.body, second.body)
  assert.equal(webhook.said()[0]!['isDryRun'], true)
})

test('a body that is not an AdmissionReview is refused with the reason', async (t) => {
  const webhook = await serve(t)
  const cases: readonly (readonly [string, Asked, number, string])[] = [
    ['/', {}, 404, 'there is nothing but /mutate'],
    ['/mutate/', {}, 404, 'there is nothing but /mutate'],
    ['/mutate', { method: 'GET' }, 405, '/mutate accepts only POST'],
    ['/mutate', { headers: { 'Content-Type': 'text/plain' } }, 415, '/mutate accepts only application/json'],
    ['/mutate', { headers: {} }, 415, '/mutate accepts only application/json'],
    [
      '/mutate',
      { headers: { ...JSON_TYPE, 'Content-Encoding': 'gzip' }, body: gzipSync(REVIEW) },
      415,
      '/mutate accepts only application/json',
    ],
    ['/mutate', { body: '' }, 400, 'the body is not valid JSON'],
    ['/mutate', { body: REVIEW.slice(0, -10) }, 400, 'the body is not valid JSON'],
    [
      '/mutate',
      { body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) },
      400,
      'the body is not valid JSON',
    ],
    ['/mutate', { body: '[]' }, 400, 'the body is a list; expected a mapping'],
    [
      '/mutate',
      { body: '{"kind":"AdmissionReview"}' },
      400,
      'the body is no AdmissionReview of admission.k8s.io/v1',
    ],
    ['/mutate', { body: `${REVIEW}${' '.repeat(3 * MIB)}` }, 413, 'a review may have 3145728 bytes'],
  ]
  for (const [path, asked, status, words] of cases) {
    const answer = await webhook.ask(path, asked)
    assert.deepEqual([answer.status, answer.body], [status, `${words}\n`])
    assert.equal(answer.headers['content-type'], 'text/plain; charset=utf-8')
  }
  assert.deepEqual(webhook.said(), [], 'such requests cannot fill the log')
})

test('a type with parameters, a long review, and one in pieces', async (t) => {
  const webhook = await serve(t)
  const headers = { 'Content-Type': 'Application/JSON; charset=utf-8' }
  assert.equal((await webhook.ask('/mutate', { headers, body: REVIEW })).status, 200)
  const long = REVIEW.replace('"status": {}', `"status": {"message": "${'x'.repeat(2 * MIB)}"}`)
  const answered = await webhook.ask('/mutate', { body: long })
  assert.equal(responseIn(JSON.parse(answered.body), UID).allowed, true)
  const chunked = { ...JSON_TYPE, 'Transfer-Encoding': 'chunked' }
  assert.equal((await webhook.ask('/mutate', { headers: chunked, body: REVIEW })).status, 200)
})

test('clients that speak something else than HTTPS, or go away, do no harm', async (t) => {
  const webhook = await serve(t)
  const plain = connectPlain(webhook.port, '127.0.0.1')
  plain.on('error', () => undefined).end('POST /mutate HTTP/1.1\r\n\r\n')
  plain.resume()
  await once(plain, 'close')
  const garbage = connect({ port: webhook.port, host: '127.0.0.1', ca: webhook.ca })
  garbage.on('error', () => undefined).write('\0\0\0\r\n\r\n')
  assert.match(await text(garbage), /^HTTP\/1\.1 400 /)
  const early = connect({ port: webhook.port, host: '127.0.0.1', ca: webhook.ca })
  await once(early, 'secureConnect')
  early.on('error', () => undefined)
  early.end(
    `POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{`,
  )
  early.resume()
  await once(early, 'close')
  const old = connect({
    port: webhook.port,
    host: '127.0.0.1',
    ca: webhook.ca,
    maxVersion: 'TLSv1.1',
    minVersion: 'TLSv1',
  })
  await once(old, 'error')
  assert.equal((await webhook.ask('/mutate', { body: REVIEW })).status, 200)
  assert.deepEqual(
    webhook.said().filter(({ level }) => level === 'error'),
    [],
  )
})

test('bodies that never end take no more memory than they may', async (t) => {
  const webhook = await serve(t)
  const head =
    'POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 3145728\r\n\r\n'
  const part = Buffer.alloc(3 * MIB - 1, 32)
  const sockets = Array.from({ length: 24 }, () =>
    connect({ port: webhook.port, host: '127.0.0.1', ca: webhook.ca }),
  )
  const refused = Promise.race(
    sockets.map(async (socket) => {
      await once(
        socket.on('error', () => undefined),
        'secureConnect',
      )
      socket.write(head)
      socket.write(part)
      const [answer] = await once(socket, 'data')
      return String(answer)
    }),
  )
  assert.match(await refused, /^HTTP\/1\.1 503 [\s\S]*too many reviews are on their way\n$/)
  for (const socket of sockets) socket.destroy()
  // What they held is there again as soon as the server has heard of it.
  while ((await webhook.ask('/mutate', { body: REVIEW })).status === 503) await wait(10)
})

test('another certificate is for the next connection', async (t) => {
  const webhook = await serve(t)
  const other = await certificateFiles(temporaryFolder(t))
  useCertificate(webhook.server, { chain: other.leaf.certificate, key: other.leaf.key })
  await assert.rejects(webhook.ask('/mutate', { body: REVIEW }))
  assert.equal((await webhook.ask('/mutate', { body: REVIEW, ca: other.caText })).status, 200)
})

interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  readonly ca?: string
}

async function serve(t: Test) {
  const files = await certificateFiles(temporaryFolder(t))
  const lines: string[] = []
  const counts = new InjectMetrics()
  const metrics = new Metrics()
  counts.addTo(metrics)
  const server = createWebhookServer({
    sidecar: sidecarSettings(),
    version: VERSION,
    metrics: counts,
    log: createLogTo('debug', { write: (line) => lines.push(line) }),
  })
  useCertificate(server, { chain: files.leaf.certificate, key: readFileSync(files.key, 'utf8') })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return {
    server,
    port,
    ca: files.caText,
    said: () => lines.map((line): Record<string, unknown> => JSON.parse(line)),
    metrics: async () => metricsText([await metrics.read()]),
    async ask(path: string, { method = 'POST', headers = JSON_TYPE, body = '', ca = files.caText }: Asked) {
      const options: RequestOptions = { port, host: '127.0.0.1', path, method, headers, ca, agent: false }
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        request(options, resolve).on('error', reject).end(body)
      })
      return { status: response.statusCode, headers: response.headers, body: await text(response) }
    },
  }
}
