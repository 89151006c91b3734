import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { connect } from 'node:tls'
import { type Test, test } from 'tap'
import type { CorpusRow } from '../../src/classify/known/corpus.ts'
import { readCorpus } from '../../src/commands/record/corpus-file.ts'
import { startRecordSite } from '../../src/commands/record/record-site.ts'
import { endWith, GATEHOUSE, plainEnvironment, run, skipped, temporaryFolder } from '../e2e/programs.ts'
import { CHROMIUM } from '../e2e/real-clients.ts'

/** What the proxy tells the app of each request. */
type Told = Readonly<Record<string, string | undefined>>

const NODE_FETCH = `fetch(process.argv[1], { method: 'POST', body: 'four' }).then((answer) => answer.text())`
const PYTHON = `
import ssl, sys, urllib.request
urllib.request.urlopen(sys.argv[1], context=ssl._create_unverified_context()).read()`

const CLIENTS: readonly (readonly [name: string, program: string, argv: readonly string[]])[] = [
  ['curl over HTTP/2', 'curl', ['-sSk', '--http2', '-e', 'https://a.test/']],
  ['curl over HTTP/1.1', 'curl', ['-sSk', '--http1.1', '-H', 'ACCEPT-Language: de', '-d', 'abc']],
  ['node fetch', process.execPath, ['-e', NODE_FETCH]],
  ['python urllib', 'python3', ['-c', PYTHON]],
]

for (const [name, program, argv] of CLIENTS) {
  test(`what is recorded of ${name} has the fingerprints that the proxy saw`, {
    skip: skipped(program),
  }, async (t) => {
    const told: Told[] = []
    const app = createServer((request, response) => {
      told.push(request.headers as Told)
      request.resume().on('end', () => response.end('ok'))
    }).listen(0, '127.0.0.1')
    t.teardown(() => app.close())
    await once(app, 'listening')
    const recorder = await startRecorder(t, [
      ...['--upstream', `http://127.0.0.1:${(app.address() as AddressInfo).port}`, '--requests', '1'],
      ...['--client', 'a-client', '--client-version', '7', '--label', 'a-label', '--situation', 'a test'],
    ])
    const env = plainEnvironment(recorder.folder, { NODE_TLS_REJECT_UNAUTHORIZED: '0' })
    const ran = await run(program, [...argv, recorder.url('/page')], { env })
    assert.equal(ran.status, 0, ran.stderr)
    assert.deepEqual(await recorder.exit, [0, null])

    const [row, ...more] = await rowsIn(recorder.file)
    assert.deepEqual(more, [])
    const { client, version, label, situation, print, requests } = row!
    assert.deepEqual([client, version, label, situation], ['a-client', '7', 'a-label', 'a test'])
    const [{ head, ja4h, situation: doing }] = requests as [(typeof requests)[0]]
    const [headers] = told as [Told]
    assert.deepEqual(
      [print.ja4, ja4h, print.http2 ?? undefined],
      [headers['x-ja4-fingerprint'], headers['x-ja4h-fingerprint'], headers['x-http2-fingerprint']],
    )
    assert.deepEqual([head.target, doing, print.ja4Source], ['/page', 'a test', 'own'])
  })
}

test('a browser is recorded with all it asks for', { skip: skipped('chromium') }, async (t) => {
  const recorder = await startRecorder(t, ['--label', 'browser-agent'])
  const profile = `--user-data-dir=${recorder.folder}/profile`
  await run('chromium', [...CHROMIUM, profile, recorder.url('/')], { env: plainEnvironment(recorder.folder) })
  recorder.process.kill('SIGINT')
  assert.deepEqual(await recorder.exit, [0, null])
  const rows = await rowsIn(recorder.file)
  const paths = rows.flatMap(({ requests }) => requests.map(({ head }) => head.target))
  for (const path of ['/', '/site.css', '/site.js', '/image.png', '/api/items'])
    assert.ok(paths.includes(path), path)
  const [first] = rows.filter(({ requests }) => requests.length > 0)
  assert.match(first!.print.http2!, /^1:65536;.*\|m,a,s,p$/)
})

test('no secret is written, and cookies keep their names', { skip: skipped('curl') }, async (t) => {
  const recorder = await startRecorder(t, ['--requests', '2'])
  const secrets = [
    'basic-secret',
    'cookie-secret',
    'key-secret',
    'query-secret',
    'body-secret',
    'sk-0123456789',
  ]
  const env = plainEnvironment(recorder.folder)
  const curl = (...argv: string[]) => run('curl', ['-sSk', ...argv], { env })
  await curl('--http1.1', '-u', `me:${secrets[0]}`, '-b', `b=${secrets[1]}; a=1`, recorder.url('/'))
  await curl(
    ...['-H', `X-Api-Key: ${secrets[2]}`, '-H', `X-Any: ${secrets[5]}`, '-d', secrets[4]!],
    recorder.url(`/api/x?q=${secrets[3]}&r=1`),
  )
  assert.deepEqual(await recorder.exit, [0, null])
  const written = readFileSync(recorder.file, 'utf8')
  for (const secret of [...secrets, Buffer.from(`me:${secrets[0]}`).toString('base64')])
    assert.ok(!written.includes(secret), secret)
  const [first, second] = await rowsIn(recorder.file)
  assert.deepEqual(first!.requests[0]!.head.rawHeaders.slice(2), [
    ...['Authorization', 'Basic <redacted>', 'User-Agent', userAgentOf(first!), 'Accept', '*/*'],
    ...['Cookie', 'b=<redacted>; a=<redacted>'],
  ])
  assert.equal(second!.requests[0]!.head.target, '/api/x?q=&r=')
  assert.equal(second!.requests[0]!.bodyBytes, 'body-secret'.length)
  assert.equal(statSync(recorder.file).mode & 0o777, 0o600)
})

test('queries are kept when asked for', { skip: skipped('curl') }, async (t) => {
  const recorder = await startRecorder(t, ['--requests', '1', '--keep-queries'])
  await run('curl', ['-sSk', recorder.url('/?q=words')], { env: plainEnvironment(recorder.folder) })
  await recorder.exit
  assert.equal((await rowsIn(recorder.file))[0]!.requests[0]!.head.target, '/?q=words')
})

test('SIGINT finishes the file, with connections that are still open or never said anything', async (t) => {
  const recorder = await startRecorder(t, [], 'an old line\n')
  const options = { host: '127.0.0.1', port: recorder.port, rejectUnauthorized: false }
  const silent = connect(options)
  const idle = connect(options)
  t.teardown(() => [silent, idle].map((socket) => socket.destroy()))
  for (const socket of [silent, idle]) socket.on('error', () => undefined)
  await Promise.all([once(silent, 'secureConnect'), once(idle, 'secureConnect')])
  idle.write('GET /page/1 HTTP/1.1\r\nhost: a\r\n\r\n')
  await once(idle, 'data')
  recorder.process.kill('SIGINT')
  assert.deepEqual(await recorder.exit, [0, null])
  assert.match(readFileSync(recorder.file, 'utf8'), /^an old line\n\{/)
  const rows = await rowsIn(recorder.file, 1)
  assert.deepEqual(rows.map(({ requests }) => requests.length).sort(), [0, 1])
  assert.equal(new Set(rows.map(({ id }) => id)).size, 2)
  assert.match(await recorder.said, /2 connections, 1 requests in /)
})

test('it stops when nothing more can be written, and says so', {
  skip: !existsSync('/dev/full'),
}, async (t) => {
  const recorder = await startRecorder(t, ['--out', '/dev/full'])
  const socket = connect({ host: '127.0.0.1', port: recorder.port, rejectUnauthorized: false })
  socket.on('error', () => undefined)
  await once(socket, 'secureConnect')
  socket.destroy()
  assert.deepEqual(await recorder.exit, [1, null])
  assert.match(await recorder.complaints, /the recording cannot be written: ENOSPC/)
})

test('it stops by itself after so many seconds', async (t) => {
  const recorder = await startRecorder(t, ['--seconds', '1'])
  assert.deepEqual(await recorder.exit, [0, null])
  assert.deepEqual(await rowsIn(recorder.file), [])
})

const WRONG: readonly (readonly [argv: readonly string[], said: RegExp, exitCode: number])[] = [
  [[], /--out is missing/, 2],
  [['--out', 'a.jsonl', '--requests', '0'], /--requests must be a whole number/, 2],
  [['--out', 'a.jsonl', '--seconds', 'soon'], /--seconds must be a whole number/, 2],
  [['--out', 'no/such/folder/a.jsonl'], /cannot be written \(ENOENT\)/, 1],
  [['--out', 'a.jsonl', '--listen', 'nowhere'], /listen/, 1],
]

for (const [argv, said, exitCode] of WRONG) {
  test(`used wrongly: record ${argv.join(' ')}`, async (t) => {
    const folder = temporaryFolder(t)
    const child = spawn(process.execPath, [GATEHOUSE, 'record', ...argv], {
      cwd: folder,
      env: plainEnvironment(folder),
    })
    endWith(t, child)
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    assert.match(stderr, said)
    assert.equal(code, exitCode)
  })
}

test('the site answers browsers, libraries, models and tools', async (t) => {
  const site = await startRecordSite()
  t.teardown(() => site.close())
  const ask = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(site.url + path, init)
    return { status: answer.status, type: answer.headers.get('content-type'), body: await answer.text() }
  }
  const post = (path: string, body: unknown) => ask(path, { method: 'POST', body: JSON.stringify(body) })
  for (const path of ['/', '/page/1', '/page/2', '/form']) assert.match((await ask(path)).body, /<a|<form/)
  assert.match((await ask('/robots.txt')).body, /^User-agent/)
  assert.equal((await ask('/image.png')).type, 'image/png')
  assert.equal((await ask('/nowhere')).status, 404)
  assert.equal((await ask('/', { method: 'HEAD' })).body, '')
  assert.deepEqual(JSON.parse((await ask('/api/anything?x=1')).body), { ok: true, path: '/api/anything' })
  const chat = JSON.parse((await post('/v1/chat/completions', { messages: [] })).body)
  assert.equal(chat.choices[0].message.content, 'Hello')
  const call = (id: unknown, method: string) => post('/mcp', { jsonrpc: '2.0', id, method })
  assert.equal(JSON.parse((await call('one', 'initialize')).body).id, 'one')
  assert.equal(JSON.parse((await call(2, 'tools/list')).body).result.tools[0].name, 'echo')
  assert.equal((await call(undefined, 'notifications/initialized')).status, 202)
  assert.equal((await ask('/mcp', { method: 'POST', body: 'no JSON' })).status, 400)
  assert.equal((await ask('/mcp')).status, 405)
})

test('a corpus is read line by line: bad lines are told with their number, and reading goes on', async () => {
  const good = (id: string) => JSON.stringify({ id, client: 'a', label: 'b' })
  const long = `{"id":"${'x'.repeat(16 * 1024 * 1024)}"}`
  const content = [good('1'), '', 'no JSON', good('4'), '{"id":5}', long, good('7')].join('\n')
  const refused: [number, string][] = []
  const read: [number, string][] = []
  for await (const { number, row } of readCorpus(Readable.from([Buffer.from(content)]), (number, { code }) =>
    refused.push([number, code]),
  ))
    read.push([number, row.id])
  assert.deepEqual(read, [
    [1, '1'],
    [4, '4'],
    [7, '7'],
  ])
  assert.deepEqual(refused, [
    [3, 'CORPUS_NOT_JSON'],
    [5, 'CORPUS_ROW_INVALID'],
    [6, 'CORPUS_LINE_TOO_LONG'],
  ])
})

test('stops reading a corpus if the callback for a bad line throws', async () => {
  const rows = readCorpus(Readable.from([Buffer.from('[]\n{"id":"2"}')]), (_, fault) => {
    throw fault
  })
  await assert.rejects(rows.next(), { code: 'CORPUS_ROW_INVALID' })
  assert.deepEqual(await rows.next(), { done: true, value: undefined })
})

async function rowsIn(file: string, linesBefore = 0): Promise<readonly CorpusRow[]> {
  const rows: CorpusRow[] = []
  const refused = (number: number, fault: Error) => {
    if (number > linesBefore) throw fault
  }
  for await (const { row } of readCorpus(createReadStream(file), refused)) rows.push(row)
  return rows
}

function userAgentOf({ requests }: CorpusRow): string {
  const raw = requests[0]!.head.rawHeaders
  return raw[raw.indexOf('User-Agent') + 1]!
}

/** In a process of its own, in a folder of its own. `before`: what its file has in it. */
async function startRecorder(t: Test, argv: readonly string[], before = '') {
  const folder = temporaryFolder(t)
  const file = join(folder, 'recorded.jsonl')
  if (before !== '') writeFileSync(file, before)
  assert.equal(existsSync(file), before !== '')
  const given = ['record', '--out', file, '--listen', '127.0.0.1:0', ...argv]
  const child = spawn(process.execPath, [GATEHOUSE, ...given], { cwd: folder, env: plainEnvironment(folder) })
  endWith(t, child)
  const exit = once(child, 'exit')
  let said = ''
  let complained = ''
  const port = new Promise<number>((found, lost) => {
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      said += chunk
      const started = /^recording at https:\/\/127\.0\.0\.1:(\d+)/.exec(said)
      if (started !== null) found(Number(started[1]))
    })
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      complained += chunk
      lost(new Error(chunk))
    })
  })
  const known = await port
  return {
    ...{ folder, file, process: child, exit, port: known },
    url: (path: string) => `https://localhost:${known}${path}`,
    said: exit.then(() => said),
    complaints: exit.then(() => complained),
  }
}
