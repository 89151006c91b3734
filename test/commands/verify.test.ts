import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { endWith, GATEHOUSE, plainEnvironment, temporaryFolder } from '../e2e/programs.ts'
import { serveDirectory } from './directory-process.ts'
import { memoryIo } from './memory-io.ts'

const ASKED = 'https://gate.example/a?b=c'

test('a signed request is explained step by step, as JSON, as HTTP/1, from a file and from standard input', async (t) => {
  const { signed, directory, write } = await agent(t)
  const json = await signed('--as', 'json')
  const http = httpOf(json, '/a?b=c')
  for (const given of [json, http, http.replaceAll('\r\n', '\n'), http.replace('/a?b=c', ASKED)]) {
    const { code, out } = await run(['-', '--directory', directory], given)
    assert.equal(code, 0, out)
    assert.deepEqual(
      out.match(/^ok +\w+/gm)?.map((line) => line.replace(/^ok +/, '')),
      ['fields', 'tag', 'times', 'components', 'agent', 'keyid', 'directory', 'key', 'signature'],
    )
    assert.match(out, /\nproven: https:\/\/agent\.example\n$/)
  }
  const shown = await run([write('r.http', http), '--directory', directory, '--base'])
  assert.match(shown.out, /^"@authority": gate\.example$/m)
  const { proven, why } = JSON.parse((await run(['-', '--directory', directory, '--json'], json)).out)
  assert.deepEqual([proven.agent, proven.key.length, why], ['https://agent.example', 43, null])
})

test('what is wrong is said where it is, and nothing after that is looked at', async (t) => {
  const { signed, directory, file, folder } = await agent(t)
  const other = join(folder, 'other.jwk')
  await sign('key', other)
  const elsewhere = join(folder, 'other.json')
  writeFileSync(elsewhere, (await sign('directory', '--key', other)).out)
  const table: readonly (readonly [
    how: readonly string[],
    options: readonly string[],
    step: string,
    why: string,
  ])[] = [
    [['--no-expires'], [], 'times', 'no-expires'],
    [['--created=-2h'], [], 'times', 'expired'],
    [['--created=+1h'], [], 'times', 'created-in-future'],
    [['--expires', '25h'], [], 'times', 'lives-too-long'],
    [['--tag', 'x'], [], 'tag', 'other-tag'],
    [['--authority', 'other.example'], [], 'signature', 'wrong'],
    [[], ['--url', 'https://other.example'], 'signature', 'wrong'],
    [[], ['--at', '1700000000'], 'times', 'created-in-future'],
    [[], ['--at', '2030-01-01T00:00:00Z'], 'times', 'expired'],
    [[], ['--directory', elsewhere], 'key', 'unknown-key'],
  ]
  for (const [how, options, step, why] of table) {
    const { code, out } = await run(
      ['-', '--directory', directory, ...options],
      await signed('--as', 'json', ...how),
    )
    assert.equal(code, 1)
    assert.match(out, new RegExp(`^NO +${step} `, 'm'), `${why}: ${out}`)
    assert.match(out, new RegExp(`\\nnot proven: ${why}\\n$`))
  }
  assert.match((await run(['-'], `{"url":"${ASKED}","headers":{}}`)).out, /^NO +fields +it has no signature/)
  assert.ok(!readFileSync(file, 'utf8').includes('undefined'))
})

test('a body that is signed is looked at', async (t) => {
  const { signed, directory, write } = await agent(t)
  const how = ['--method', 'POST', '--body', write('body', 'hello'), '--cover', 'content-digest']
  const { headers } = JSON.parse(await signed('--as', 'json', ...how))
  for (const [body, expected] of [
    ['hello', 0],
    ['hellp', 1],
  ] as const) {
    const request = JSON.stringify({ method: 'POST', url: ASKED, headers, body })
    const { code, out } = await run(['-', '--directory', directory], request)
    assert.equal(code, expected, out)
    assert.match(out, body === 'hello' ? /^ok +body +5 bytes/m : /^NO +body .*\n\nnot proven: other-body\n$/m)
  }
  const lines = (headers as [string, string][]).map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const head = `POST /a?b=c HTTP/1.1\r\nHost: gate.example\r\n${lines}`
  const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n`
  for (const [http, expected] of [
    [`${head}Content-Length: 5\r\n\r\nhello`, /^ok +body +5 bytes/m],
    [`${chunked}2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n`, /^ok +body +5 bytes/m],
    [`${chunked}2\r\nhe\r\n3\r\nllp\r\n0\r\n\r\n`, /^NO +body/m],
    [`${chunked}2\r\nhe\r\nfffffff\r\nllo\r\n0\r\n\r\n`, /in chunks that is not whole/],
    [`${chunked}hello`, /in chunks that is damaged/],
  ] as const) {
    const { out, err } = await run(['-', '--directory', directory], http)
    assert.match(out + err, expected)
  }
})

test('the directory is fetched with the guards of the gateway', async (t) => {
  const { file, folder } = await agent(t)
  const { child, place } = await serveDirectory(t, folder, file)
  const request = (await sign('request', ASKED, '--key', file, '--agent', place, '--as', 'json')).out
  const { code, out } = await run(['-', '--allow-private'], request)
  assert.equal(code, 0, out)
  assert.match(out, /^ok +directory +one key from http:\/\/127\.0\.0\.1:\d+\/\S+, signed by its host$/m)
  assert.match((await run(['-'], request)).out, /^NO +agent /m)
  child.kill('SIGKILL')
  await once(child, 'exit')
  assert.match((await run(['-', '--allow-private'], request)).out, /^NO +directory .*ECONNREFUSED/m)
})

test('what comes to a port is explained there, and answered with that', async (t) => {
  const { file, folder, directory } = await agent(t)
  const argv = ['verify', '--listen', '127.0.0.1:0', '--directory', directory]
  const child = spawn(process.execPath, [GATEHOUSE, ...argv], {
    env: plainEnvironment(folder),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  endWith(t, child)
  const [place] = (await once(createInterface(child.stderr), 'line')) as [string]
  const given = ['--key', file, '--agent', 'https://agent.example', '--send']
  const right = await sign('request', place, ...given)
  assert.deepEqual([right.code, /proven: https:\/\/agent\.example/.test(right.out)], [0, true], right.out)
  const wrong = await sign('request', place, ...given, '--no-expires')
  assert.deepEqual([wrong.code, /not proven: no-expires/.test(wrong.out)], [1, true])
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

test('reports input that is not a request', async (t) => {
  const { signed, directory } = await agent(t)
  for (const text of [
    '',
    'x',
    '{',
    '{}',
    'GET\r\n\r\n',
    'GET https://a b/ HTTP/1.1\r\n\r\n',
    'GET / HTTP/1.1\r\nno header\r\n\r\n',
    '{"url":1}',
    '[]',
  ])
    assert.deepEqual(
      await run(['-', '--directory', directory], text).then(({ code, out }) => [code, out]),
      [1, ''],
      text,
    )
  const nowhere = await run(['-', '--directory', directory], 'GET https://[/ HTTP/1.1\r\n\r\n')
  assert.deepEqual([nowhere.code, nowhere.err], [1, ''])
  const json = await signed('--as', 'json')
  const http = httpOf(json, ASKED)
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((each) => Buffer.from(each).toString('latin1')),
    fc.json(),
  )
  const flips = fc.tuple(
    fc.constantFrom(json, http),
    fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    fc.oneof(
      fc.string({ unit: 'binary-ascii', maxLength: 3 }),
      fc.constantFrom('[', '\r\n', '\u0085', ' ', '"'),
    ),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        bytes,
        flips.map(([whole, part, by]) => {
          const at = Math.floor(part * whole.length)
          return whole.slice(0, at) + by + whole.slice(at + 1)
        }),
      ),
      async (text) => {
        const { code, err } = await run(['-', '--directory', directory], text)
        assert.ok(code === 0 || code === 1, err)
        assert.doesNotMatch(err, /TypeError|at file:/)
        if (code === 0) assert.match(text, /Signature-Input/i)
      },
    ),
    { interruptAfterTimeLimit: 3_000 },
  )
})

test('what is asked wrongly is said', async () => {
  for (const [argv, said] of [
    [[], /either FILE or --listen/],
    [['-', '--listen', '127.0.0.1:0'], /either FILE or --listen/],
    [['none.http'], /none\.http: no such file/],
    [['-', '--url', 'gate.example'], /--url must be/],
    [['-', '--at', 'now'], /--at must be/],
    [['--listen', 'x'], /--listen/],
  ] as const) {
    const { code, err } = await run(argv, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.ok(code === 1 || code === 2)
    assert.match(err, said)
  }
})

function httpOf(json: string, target: string): string {
  const { headers } = JSON.parse(json) as { headers: [string, string][] }
  const lines = headers.map(([name, value]) => `${name}: ${value}`).join('\r\n')
  return `GET ${target} HTTP/1.1\r\nHost: gate.example\r\n${lines}\r\n\r\n`
}

async function agent(t: Test) {
  const folder = temporaryFolder(t)
  const file = join(folder, 'agent.jwk')
  await sign('key', file)
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const directory = write('directory.json', (await sign('directory', '--key', file)).out)
  const given = ['request', ASKED, '--key', file, '--agent', 'https://agent.example']
  const signed = async (...more: readonly string[]) => (await sign(...given, ...more)).out
  return { folder, file, directory, write, signed }
}

async function sign(...argv: readonly string[]) {
  const io = memoryIo()
  const code = await runCli(COMMANDS, ['sign', ...argv], io)
  return { code, out: io.out }
}

async function run(argv: readonly string[], stdin = '') {
  const io = memoryIo(stdin)
  const code = await runCli(COMMANDS, ['verify', ...argv], io)
  return { code, out: io.out, err: io.err }
}
