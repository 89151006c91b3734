import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { type CurlCase, curl } from './curl.ts'
import { startGatehouse } from './gatehouse.ts'
import { freePort, untilOpen } from './ports.ts'
import { endWith, plainEnvironment, skipped, temporaryFolder } from './programs.ts'
import { answerOf, asHttp2, type Talk } from './talk.ts'

const CASES: readonly CurlCase[] = [
  { name: 'a small file', path: '/small.html', status: '200' },
  { name: 'a large file', path: '/large.bin', status: '200' },
  { name: 'an empty file', path: '/empty.txt', status: '200' },
  { name: 'HEAD', path: '/large.bin', argv: ['-I'], status: '200' },
  {
    name: 'a file that nginx packs as it sends it',
    path: '/text.txt',
    argv: ['--compressed'],
    status: '200',
  },
  {
    name: 'a file that has not changed',
    path: '/small.html',
    argv: ['-H', 'If-Modified-Since: Fri, 31 Dec 2038 00:00:00 GMT'],
    status: '304',
  },
  { name: 'part of a file', path: '/large.bin', argv: ['-r', '1000-99999'], status: '206' },
  { name: 'a part that is not there', path: '/small.html', argv: ['-r', '99999-'], status: '416' },
  { name: 'no file', path: '/no/such/file', status: '404' },
  { name: 'a folder', path: '/folder', status: '301' },
  { name: 'an unknown status', path: '/odd', status: '299' },
  { name: 'nothing', path: '/nothing', status: '204' },
  { name: 'a method that is not allowed', path: '/small.html', argv: ['-d', 'a=b'], status: '405' },
  {
    name: 'a body that is too large, and not waited for',
    path: '/limited',
    argv: ['--data-binary', '@-', '-H', 'Expect: 100-continue'],
    input: randomBytes(500_000),
    status: '413',
  },
]

test('nginx: what curl is answered through the proxy is the same as without it', {
  skip: skipped('nginx'),
}, async (t) => {
  const folder = temporaryFolder(t)
  const nginx = await startNginx(t)
  for (const [name, upstream] of Object.entries({
    'on a unix socket': `unix:${nginx.socket}`,
    'over HTTP/1.1': `http://127.0.0.1:${nginx.port}`,
    'over HTTP/2': `h2c://127.0.0.1:${nginx.http2Port}`,
  })) {
    t.test(name, async (t) => {
      const gatehouse = await startGatehouse(t, { upstream })
      const ask = async (one: CurlCase, url: string, ...argv: readonly string[]): Promise<Talk> => {
        const all = ['-H', 'Host: app.example.test', ...argv, ...(one.argv ?? []), url + one.path]
        return { request: null, answer: answerOf(await curl(folder, all, one.input)) }
      }
      for (const one of CASES) {
        t.test(one.name, async () => {
          const direct = await ask(one, `http://127.0.0.1:${nginx.port}`)
          assert.equal(direct.answer.heads.at(-1)!.status, one.status)
          const http1 = await ask(one, gatehouse.url, '--http1.1', '--cacert', gatehouse.caFile)
          const http2 = await ask(one, gatehouse.url, '--http2', '--cacert', gatehouse.caFile)
          assert.deepEqual(asHttp2(http1), asHttp2(direct))
          assert.deepEqual(asHttp2(http2), asHttp2(direct))
        })
      }
    })
  }
})

interface Nginx {
  readonly port: number
  readonly http2Port: number
  readonly socket: string
}

async function startNginx(t: Test): Promise<Nginx> {
  const folder = temporaryFolder(t)
  const nginx = { port: await freePort(), http2Port: await freePort(), socket: join(folder, 'nginx.sock') }
  mkdirSync(join(folder, 'www', 'folder'), { recursive: true })
  const files = {
    'small.html': '<p>small',
    'large.bin': randomBytes(3_000_000),
    'empty.txt': '',
    'text.txt': 'so it is '.repeat(50_000),
  }
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, 'www', name), content)
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const config = `
    daemon off; master_process off; pid ${folder}/pid; error_log stderr crit;
    events { }
    http {
      access_log off; gzip on; gzip_types text/plain; etag on; if_modified_since before; absolute_redirect off; client_max_body_size 100k;
      types { text/html html; text/plain txt; } default_type application/octet-stream;
      ${places.map((place) => `${place}_temp_path ${folder}/${place};`).join(' ')}
      server {
        listen unix:${nginx.socket}; listen 127.0.0.1:${nginx.port}; listen 127.0.0.1:${nginx.http2Port} http2;
        root ${folder}/www;
        location = /odd { add_header Set-Cookie a=1 always; add_header Set-Cookie b=2 always; return 299 "odd"; }
        location = /nothing { return 204; }
        location = /limited { proxy_pass http://127.0.0.1:${nginx.port}/nothing; }
      }
    }`
  writeFileSync(join(folder, 'nginx.conf'), config)
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], {
    env: plainEnvironment(folder),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  endWith(t, child)
  await untilOpen(nginx.port, child)
  return nginx
}
