import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { feedKeyOf, makeFeedPrivateKey, parseFeedPrivateKey, signFeed } from '../../src/plane/feed.ts'
import { start } from '../commands/gateway-process.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'
import { freePort } from './ports.ts'
import { endWith, plainEnvironment, skipped, temporaryFolder } from './programs.ts'

const ca = await testCa()
const leaf = await testLeaf(ca, ['localhost'])
const key = parseFeedPrivateKey(makeFeedPrivateKey())
const PUBLISHED_S = 1_790_000_000

test('nginx: a feed is taken, asked for only when it has changed, and never goes back', {
  skip: skipped('nginx'),
}, async (t) => {
  const folder = temporaryFolder(t)
  const nginx = await startNginx(t)
  configure(folder, [feed('acme', `${nginx.url}/acme.json`)])
  nginx.publish('acme', 1)
  const first = await start(t, folder)
  await first.until('feed_version{feed="acme"}', 1)
  assert.equal(nginx.answers().at(-1), '/acme.json 200 identity -')

  first.hangUp()
  await nginx.answered('/acme.json 304 identity -')
  nginx.publish('acme', 3)
  first.hangUp()
  await first.until('feed_version{feed="acme"}', 3)
  await first.until('reload_current{what="signatures"}', 1)
  nginx.publish('acme', 2)
  first.hangUp()
  await first.until('feed_failures_total{feed="acme",reason="rolled-back"}', 1)
  await first.until('feed_version{feed="acme"}', 3)
  nginx.publish('acme', 3, 'Other')
  first.hangUp()
  await first.until('feed_failures_total{feed="acme",reason="conflict"}', 1)
  await first.stop()

  nginx.unpublish('acme')
  const second = await start(t, folder)
  await second.until('feed_failures_total{feed="acme",reason="status"}', 1)
  await second.until('feed_version{feed="acme"}', 3)
  nginx.publish('acme', 2)
  second.hangUp()
  await second.until('feed_failures_total{feed="acme",reason="rolled-back"}', 1)
  nginx.publish('acme', 4)
  second.hangUp()
  await second.until('feed_version{feed="acme"}', 4)
  await second.stop()
})

test('nginx: any other answer is refused as a feed, with the reason', {
  skip: skipped('nginx'),
}, async (t) => {
  const folder = temporaryFolder(t)
  const nginx = await startNginx(t)
  nginx.publish('acme', 1)
  nginx.publish('packed', 1, 'Acme', gzipSync)
  for (const name of ['large', 'slow', 'guarded', 'untrusted']) nginx.publish(name, 1)
  const { url } = nginx
  configure(folder, [
    feed('acme', `${url}/acme.json`),
    feed('missing', `${url}/missing.json`),
    feed('moved', `${url}/moved.json`),
    feed('large', `${url}/large.json`, 'bytes_max: 1KiB'),
    feed('slow', `${url}/slow.json`, 'timeout: 500ms'),
    feed('cut', `${url}/cut.json`),
    feed('failing', `${url}/failing.json`),
    feed('html', `${url}/html.json`),
    feed('packed', `${url}/packed.json`),
    feed('guarded', `${url}/guarded.json`, 'allow_private: false'),
    feed('literal', `${url.replace('localhost', '127.0.0.1')}/acme.json`, 'allow_private: false'),
    feed('untrusted', `${url}/untrusted.json`, 'ca_file: null'),
  ])
  const gateway = await start(t, folder)
  for (const [name, reason] of [
    ['missing', 'status'],
    ['moved', 'redirect'],
    ['large', 'too-large'],
    ['slow', 'timeout'],
    ['cut', 'network'],
    ['failing', 'status'],
    ['html', 'malformed'],
    ['packed', 'malformed'],
    ['guarded', 'address'],
    ['literal', 'address'],
    ['untrusted', 'network'],
  ]) {
    await gateway.until(`feed_failures_total{feed="${name}",reason="${reason}"}`, 1)
    await gateway.until(`feed_version{feed="${name}"}`, 0)
  }
  await gateway.until('feed_version{feed="acme"}', 1)
  const asked = new Set(nginx.answers().map((answer) => answer.split(' ')[0]))
  for (const path of ['/guarded.json', '/target.json', '/untrusted.json'])
    assert.ok(!asked.has(path), `${path} was asked for`)
  await gateway.stop()
})

/** A feed of the configuration; `other` settings come instead of the usual ones. */
function feed(name: string, url: string, other = ''): string {
  const usual = { public_keys: feedKeyOf(key).text, ca_file: 'ca.pem', allow_private: 'true' }
  const settings = Object.entries(usual).filter(([setting]) => !other.startsWith(`${setting}:`))
  const lines = [`name: ${name}`, `url: "${url}"`, ...settings.map(([a, b]) => `${a}: "${b}"`), other]
  return `  - ${lines.filter((line) => line !== '').join('\n    ')}\n`.replaceAll('"true"', 'true')
}

function configure(folder: string, feeds: readonly string[]): void {
  writeFileSync(join(folder, 'ca.pem'), ca.certificate)
  const listen = '"127.0.0.1:0"'
  const text = `proxy: {upstream: "http://127.0.0.1:9", listen: ${listen}}\nmanage: {listen: ${listen}}\nfeeds:\n`
  writeFileSync(join(folder, 'g.yaml'), text + feeds.join(''), { mode: 0o600 })
}

async function startNginx(t: Test) {
  const folder = temporaryFolder(t)
  const www = join(folder, 'www')
  mkdirSync(www)
  writeFileSync(join(folder, 'tls.pem'), leaf.certificate)
  writeFileSync(join(folder, 'tls.key'), leaf.key)
  writeFileSync(join(folder, 'log'), '')
  const port = await freePort()
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const config = `
    daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/errors crit;
    events { }
    http {
      log_format said '$uri $status $http_accept_encoding $sent_http_content_encoding'; access_log ${folder}/log said;
      gzip on; gzip_types *; gzip_min_length 1; etag on;
      ${places.map((place) => `${place}_temp_path ${folder}/${place};`).join(' ')}
      server {
        listen 127.0.0.1:${port} ssl; root ${www};
        ssl_certificate ${folder}/tls.pem; ssl_certificate_key ${folder}/tls.key;
        location = /moved.json { return 301 /target.json; }
        location = /failing.json { return 503; }
        location = /html.json { return 200 "<html>a page of its own</html>"; }
        location = /packed.json { gzip off; add_header Content-Encoding gzip; }
        location = /slow.json { limit_rate 64; }
        location = /cut.json { proxy_pass http://127.0.0.1:${await cuttingServer(t)}; }
      }
    }`
  writeFileSync(join(folder, 'nginx.conf'), config)
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], {
    env: plainEnvironment(folder),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  endWith(t, child)
  const answers = () => readFileSync(join(folder, 'log'), 'utf8').trimEnd().split('\n')
  const url = `https://localhost:${port}`
  let published = 0
  return {
    url,
    /** Path, status, and the codings that were asked for and used: all it has answered. */
    answers,
    async answered(wanted: string) {
      while (!answers().includes(wanted)) await wait(20)
    },
    publish(
      name: string,
      version: number,
      software = 'Acme',
      packed = (text: string): string | Buffer => text,
    ) {
      const list = [
        {
          id: 'acme-bot',
          name: software,
          kind: 'agent',
          category: 'crawler',
          description: 'x'.repeat(1000),
        },
      ]
      const content = { name, version, created: '2026-11-21T10:00:00Z', expires: null, software: list }
      writeFileSync(join(www, 'draft'), packed(signFeed(content, [key])))
      // The tag that nginx makes is of seconds and of the length: two of one second would be one for it.
      published++
      utimesSync(join(www, 'draft'), PUBLISHED_S + published, PUBLISHED_S + published)
      renameSync(join(www, 'draft'), join(www, `${name}.json`))
    },
    unpublish: (name: string) => rmSync(join(www, `${name}.json`)),
  }
}

/** Promises more than it sends. */
async function cuttingServer(t: Test): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{"payloadType":'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}
