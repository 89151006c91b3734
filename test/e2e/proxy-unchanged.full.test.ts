import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { type App, bodyOf, type Route, startApp, startHttp2App } from './app.ts'
import { type CurlCase, curl } from './curl.ts'
import { startGatehouse } from './gatehouse.ts'
import { skipped, temporaryFolder } from './programs.ts'
import { answerOf, asHttp2, requestOf, type Talk } from './talk.ts'

const ROUTES: Readonly<Record<string, Route>> = {
  '/cookies': (_, response) => {
    response.writeHead(299, 'Oddly Fine', [
      ...[
        'Set-Cookie',
        'a=1; Path=/',
        'X-Mixed-CASE',
        'yes',
        'set-cookie',
        'b=2; HttpOnly',
        'X-Mixed-CASE',
        'no',
      ],
      ...[
        'Cache-Control',
        'no-store',
        'SET-COOKIE',
        'c=3; Expires=Thu, 01 Jan 2032 00:00:00 GMT',
        'X-Empty',
        '',
      ],
      ...[
        'X-Latin',
        'caf\xe9',
        'Content-Length',
        '2',
        'Date',
        'Sat, 01 Jan 2000 00:00:00 GMT',
        'Server',
        'app/1',
      ],
    ])
    response.end('ok')
  },
  '/chunked': async (request, response) => {
    await bodyOf(request)
    for (let i = 0; i < 100; i++) response.write(`${i} ${'x'.repeat(i * 37)}\n`)
    response.end()
  },
  '/to-the-end': (_, response) => {
    response.useChunkedEncodingByDefault = false
    response.setHeader('Connection', 'close')
    response.write('as much as comes ')
    response.end('until the connection ends')
  },
  '/trailers': (_, response) => {
    response.writeHead(200, ['Trailer', 'X-Sum, X-More'])
    response.write('the body')
    response.addTrailers([
      ['X-Sum', '7'],
      ['X-More', 'a'],
      ['X-More', 'b'],
    ])
    response.end()
  },
  '/early-hints': (_, response) => {
    response.writeProcessing()
    response.writeEarlyHints({
      link: ['</a.css>; rel=preload; as=style', '</b.js>; rel=preload'],
      'x-hint': '1',
    })
    response.end('ok')
  },
  '/continue': async (request, response) => {
    if (request.headers.expect !== undefined) response.writeContinue()
    await bodyOf(request)
    response.end('taken')
  },
  '/too-much': (request, response) => {
    request.resume()
    // With its length it is whole at once: over HTTP/2 curl 7.88 ends its request short of the length it announced as soon
    // as it has the head, which nghttp2 resets at our end.
    response.writeHead(413, { Connection: 'close', 'Content-Length': 8 })
    response.end('too much')
  },
  '/none': (_, response) => {
    response.writeHead(204, { 'X-Empty': 'quite' })
    response.end()
  },
  '/not-modified': (_, response) => {
    response.writeHead(304, { ETag: '"a"', 'Content-Length': '1234' })
    response.end()
  },
  '/head': (_, response) => {
    response.writeHead(200, { 'Content-Length': '1234567', 'Content-Type': 'text/x-odd' })
    response.end()
  },
  '/wrong': (_, response) => {
    response.writeHead(500)
    response.end('the app has failed')
  },
}

const CASES: readonly CurlCase[] = [
  {
    name: 'headers in any case, twice, empty, and beyond ASCII; a path as it is',
    path: '/a/./b/%41%2f..;x=1?q=%20%zz&a=b&%7Bx%7D=|',
    argv: [
      ...[
        '--path-as-is',
        '-A',
        'An agent/1.0 (of sorts)',
        '-e',
        'https://elsewhere.example.test/?a',
        '-b',
        'a=1; b=2; a=3',
      ],
      ...[
        '-H',
        'X-Odd-CASE: Value',
        '-H',
        'x-many: 1',
        '-H',
        'X-Many: 2',
        '-H',
        'X-Empty;',
        '-H',
        'x_under: 1',
      ],
      ...['-H', 'X-Latin: caf\xc3\xa9', '-H', 'Accept-Encoding: br;q=1.0, gzip', '-H', 'Priority: u=1'],
      ...[
        '-H',
        'Authorization: Basic YTpi',
        '-H',
        'Range: bytes=0-',
        '-H',
        'Via: 1.1 another',
        '-H',
        'Origin: null',
      ],
    ],
    status: '200',
  },
  { name: 'several Set-Cookie, an unknown status and reason', path: '/cookies', status: '299' },
  { name: 'HEAD', path: '/head', argv: ['-I'], status: '200' },
  { name: '204', path: '/none', status: '204' },
  { name: '304', path: '/not-modified', argv: ['-H', 'If-None-Match: "a"'], status: '304' },
  { name: '500', path: '/wrong', status: '500' },
  { name: 'OPTIONS', path: '/', argv: ['-X', 'OPTIONS'], status: '200' },
  { name: 'a method of WebDAV', path: '/', argv: ['-X', 'PROPFIND', '-H', 'Depth: 1'], status: '200' },
  { name: 'an answer in chunks', path: '/chunked', status: '200' },
  { name: 'an answer that ends with its connection', path: '/to-the-end', status: '200' },
  {
    name: 'a body of known length',
    path: '/',
    argv: ['--data-binary', '@-', '-H', 'Expect:'],
    input: randomBytes(300_000),
    status: '200',
  },
  {
    name: 'a body of unknown length',
    path: '/chunked',
    argv: ['-T', '-', '-H', 'Expect:'],
    input: randomBytes(300_000),
    status: '200',
  },
  { name: 'an empty body', path: '/', argv: ['-X', 'PUT', '-d', ''], status: '200' },
  { name: 'DELETE with a body', path: '/', argv: ['-X', 'DELETE', '-d', 'why'], status: '200' },
  {
    name: 'Expect: 100-continue',
    path: '/continue',
    argv: ['--data-binary', '@-', '-H', 'Expect: 100-continue', '--expect100-timeout', '30'],
    input: randomBytes(2_000_000),
    status: '200',
  },
  {
    name: 'Expect: 100-continue for what is too much',
    path: '/too-much',
    argv: ['--data-binary', '@-', '-H', 'Expect: 100-continue', '--expect100-timeout', '30'],
    input: randomBytes(2_000_000),
    status: '413',
  },
  { name: '102 Processing and 103 Early Hints', path: '/early-hints', status: '200' },
  {
    name: 'trailers',
    path: '/trailers',
    argv: ['-H', 'TE: trailers'],
    status: '200',
  },
]

test('unchanged: what curl asks and is answered through the proxy is the same as without it', {
  skip: skipped('curl'),
}, async (t) => {
  const app = await startApp(t, ROUTES)
  const gatehouse = await startGatehouse(t, { upstream: app.url, settings: ['odd_header_names: pass'] })
  const ask = asking(app, temporaryFolder(t))
  for (const one of CASES) {
    t.test(one.name, async () => {
      const direct = await ask(one, app.url)
      assert.equal(direct.answer.heads.findLast(({ status }) => status !== '')!.status, one.status)
      assert.deepEqual(await ask(one, gatehouse.url, '--http1.1', '--cacert', gatehouse.caFile), direct)
      const http2 = await ask(one, gatehouse.url, '--http2', '--cacert', gatehouse.caFile)
      assert.deepEqual(asHttp2(http2), asHttp2(direct))
    })
  }
})

test('unchanged: the same with an app of HTTP/2', { skip: skipped('curl') }, async (t) => {
  const app = await startHttp2App(t)
  const gatehouse = await startGatehouse(t, { upstream: app.url, settings: ['odd_header_names: pass'] })
  const ask = asking(app, temporaryFolder(t))
  for (const one of CASES) {
    t.test(one.name, async () => {
      const direct = await ask(one, app.url.replace('h2c', 'http'), '--http2-prior-knowledge')
      for (const version of ['--http1.1', '--http2']) {
        const proxied = await ask(one, gatehouse.url, version, '--cacert', gatehouse.caFile)
        assert.deepEqual(asHttp2(proxied), asHttp2(direct), version)
      }
    })
  }
})

function asking(app: App, folder: string) {
  return async (one: CurlCase, url: string, ...argv: readonly string[]): Promise<Talk> => {
    const all = ['-H', 'Host: app.example.test', ...argv, ...(one.argv ?? []), url + one.path]
    const answer = await curl(folder, all, one.input)
    return { request: requestOf(app.asked.splice(0).at(-1)), answer: answerOf(answer) }
  }
}
