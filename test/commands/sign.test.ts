import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { DIRECTORY } from '../../src/classify/known/signer-id.ts'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { readKeySet } from '../../src/identity/keys/agent-document.ts'
import { directoryProof } from '../../src/identity/verify/directory-signature.ts'
import { verifySignature } from '../../src/identity/verify/http-signature.ts'
import { readBotSignature } from '../../src/identity/verify/web-bot-auth.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { serveDirectory } from './directory-process.ts'
import { memoryIo } from './memory-io.ts'

const RULES = { allowPrivate: false }
const URL_ASKED = 'https://gate.example/a?b=c'

test('a key is made once, for its owner alone, and another is put in front of it', async (t) => {
  const file = join(temporaryFolder(t), 'agent.jwk')
  const first = await run('key', file)
  assert.match(first.out, /^[\w-]{43}\n$/)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const asJson = JSON.parse((await run('key', '--json', `${file}.other`)).out)
  assert.deepEqual([asJson.file, asJson.keys, asJson.thumbprint.length], [`${file}.other`, 1, 43])
  const again = await run('key', file)
  assert.deepEqual([again.code, again.out], [1, ''])
  assert.match(again.err, /agent\.jwk is there already/)
  const second = await run('key', '--add', '--algorithm', 'ecdsa-p256-sha256', file)
  const { keys } = JSON.parse((await run('directory', '--key', file)).out)
  assert.deepEqual(
    keys.map(({ kid }: { kid: string }) => `${kid}\n`),
    [second.out, first.out],
  )
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const secret = JSON.parse(readFileSync(file, 'utf8')).keys[0].d
  assert.ok(!JSON.stringify(keys).includes(secret))
  writeFileSync(file, `{"d":"${secret}"}`)
  const broken = await run('directory', '--key', file)
  assert.deepEqual([broken.code, broken.err.includes(secret)], [1, false])
})

test('a request is signed so that it is verified, in each form that is printed', async (t) => {
  const file = join(temporaryFolder(t), 'agent.jwk')
  await run('key', file)
  const [key] = readKeySet(JSON.parse((await run('directory', '--key', file)).out), RULES)
  const body = join(temporaryFolder(t), 'body')
  writeFileSync(body, '{"a":1}')
  const given = ['--key', file, '--agent', 'https://agent.example', URL_ASKED]
  const more = [
    '--method',
    'POST',
    '--body',
    body,
    '-H',
    'X-A: 1',
    '--cover',
    'content-digest',
    '--cover',
    'x-a',
  ]
  for (const options of [[], ['--form', 'string'], more, ['--no-nonce'], ['--cover', '@target-uri']]) {
    const { code, out, err } = await run('request', ...given, '--as', 'json', ...options)
    assert.equal(code, 0, err)
    const { method, headers } = JSON.parse(out) as { method: string; headers: [string, string][] }
    const request = { method, base: 'https://gate.example', target: '/a?b=c', rawHeaders: headers.flat() }
    const read = readBotSignature(request, RULES, Date.now())
    assert.ok(read.kind === 'signature', JSON.stringify(read))
    assert.equal(read.agentId, 'https://agent.example')
    assert.equal(verifySignature(read.signature, key!), null)
  }
  const lines = (await run('request', ...given)).out.trimEnd().split('\n')
  assert.deepEqual(
    lines.map((line) => line.split(':')[0]),
    ['Signature-Agent', 'Signature-Input', 'Signature'],
  )
  const curl = (await run('request', ...given, '--as', 'curl', '-H', "X-It: it's")).out
  assert.match(curl, /^curl -H 'X-It: it'\\''s' -H 'Signature-Agent: /)
})

test('what must not be taken can be made, too', async (t) => {
  const file = join(temporaryFolder(t), 'agent.jwk')
  await run('key', file)
  const table: readonly (readonly [options: readonly string[], fault: string])[] = [
    [['--no-expires'], 'no-expires'],
    [['--expires', '25h'], 'lives-too-long'],
    [['--created=+10m'], 'created-in-future'],
    [['--created=-2h'], 'expired'],
    [['--tag', 'other'], 'other-tag'],
  ]
  for (const [options, fault] of table) {
    const given = ['--key', file, '--agent', 'https://agent.example', URL_ASKED, '--as', 'json', ...options]
    const { headers } = JSON.parse((await run('request', ...given)).out)
    const request = {
      method: 'GET',
      base: 'https://gate.example',
      target: '/a?b=c',
      rawHeaders: headers.flat(),
    }
    const read = readBotSignature(request, RULES, Date.now())
    assert.equal(read.kind === 'refused' && read.fault, fault)
  }
})

test('what is asked wrongly is said, and nothing is signed', async (t) => {
  const file = join(temporaryFolder(t), 'agent.jwk')
  await run('key', file)
  const table: readonly (readonly [options: readonly string[], said: RegExp])[] = [
    [[], /--key is missing/],
    [['--key', file], /--agent is missing/],
    [['--key', 'none.jwk', '--agent', 'https://a.example'], /none\.jwk: no such file/],
    [['--key', file, '--agent', 'https://a.example', '-H', 'nothing'], /--header must be NAME: VALUE/],
    [['--key', file, '--agent', 'https://a.example', '-H', 'a: b\r\nc: d'], /--header must be/],
    [
      ['--key', file, '--agent', 'https://a.example', '--method', 'A B'],
      /--method is not a valid HTTP method/,
    ],
    [['--key', file, '--agent', 'https://a.example', '--created', 'soon'], /--created must be/],
    [['--key', file, '--agent', 'https://a.example', '--expires', 'late'], /--expires must be/],
    [['--key', file, '--agent', 'https://a.example', '--cover', 'date'], /the request has no "date"/],
  ]
  for (const [options, said] of table) {
    const { code, out, err } = await run('request', URL_ASKED, ...options)
    assert.ok(code === 1 || code === 2, `${code}`)
    assert.equal(out, '')
    assert.match(err, said)
  }
  const { err } = await run('request', 'ftp://a.example', '--key', file, '--agent', 'https://a.example')
  assert.match(err, /URL must be http/)
})

test('a request is sent, and what is answered is shown, in characters that do nothing to a terminal', async (t) => {
  const file = join(temporaryFolder(t), 'agent.jwk')
  await run('key', file)
  const asked = Promise.withResolvers<string[]>()
  const server = createServer((request, response) => {
    asked.resolve(request.rawHeaders)
    response.writeHead(403, { 'X-Odd': 'a\u0085b' }).end('no')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const sent = await run('request', url, '--key', file, '--agent', 'https://agent.example', '--send')
  assert.equal(sent.code, 1)
  assert.match(sent.out, /^403\n/)
  assert.match(sent.out, /\n\nno\n$/)
  assert.ok(!sent.out.includes('\u0085'))
  const request = { method: 'GET', base: url.slice(0, -1), target: '/', rawHeaders: await asked.promise }
  assert.equal(readBotSignature(request, RULES, Date.now()).kind, 'signature')
  const unreachable = await run(
    'request',
    'http://127.0.0.1:9/',
    '--key',
    file,
    '--agent',
    'https://a.example',
    '--send',
  )
  assert.deepEqual([unreachable.code, /ECONNREFUSED/.test(unreachable.err)], [1, true])
})

test('a directory is served, signed for the host that is asked, by the keys that the file has by then', async (t) => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'agent.jwk')
  await run('key', file)
  const { child, place: line } = await serveDirectory(t, folder, file)
  for (const count of [1, 2]) {
    const answer = await fetch(line + DIRECTORY)
    const body = Buffer.from(await answer.arrayBuffer())
    const keys = readKeySet(JSON.parse(body.toString()), RULES)
    assert.equal(keys.length, count)
    const headers = Object.fromEntries(answer.headers)
    const proof = directoryProof({ url: line + DIRECTORY, headers, body }, keys, Date.now())!
    assert.equal(proof.keys.length, count)
    assert.equal(answer.headers.get('content-type'), 'application/http-message-signatures-directory+json')
    await run('key', '--add', file)
  }
  assert.equal((await fetch(`${line}/other`)).status, 404)
  child.kill('SIGINT')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

async function run(...argv: readonly string[]) {
  const io = memoryIo()
  const code = await runCli(COMMANDS, ['sign', ...argv], io)
  return { code, out: io.out, err: io.err }
}
