import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { TestManagement } from '../manage/management.ts'
import { memoryIo } from './memory-io.ts'

const GPTBOT = '{"user_agent": "Mozilla/5.0 (compatible; GPTBot/1.2)"}'

test('tools at a Gatehouse that runs', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const env = { GATEHOUSE_URL: `${manage.url}/`, GATEHOUSE_KEY: manage.adminKey }

  t.test('are listed', async () => {
    const { code, out } = await run(['list'], { env })
    assert.equal(code, 0)
    assert.match(out, /^TOOL +DOES +NEEDS\n/)
    assert.match(out, /^detect_agent +Detect an AI agent +detect$/m)
    const listed = JSON.parse((await run(['list', '--json'], { env })).out)
    assert.ok(listed.every((each: { input_schema: unknown }) => each.input_schema !== undefined))
  })

  t.test('are called, with arguments, from standard input, and without any', async () => {
    for (const [given, stdin] of [[GPTBOT], ['-', GPTBOT]] as const) {
      const { code, out } = await run(['call', 'detect_agent', given], { env, stdin })
      assert.equal(code, 0)
      assert.equal(JSON.parse(out).agent_id, 'gptbot')
    }
    assert.ok(JSON.parse((await run(['call', 'get_stats'], { env })).out).agents.total >= 0)
  })

  t.test('refuse: an answer, and exit code 1', async () => {
    const { code, out, err } = await run(['call', 'get_agent', '{"agent_id": "no-such-agent"}'], { env })
    assert.deepEqual([code, JSON.parse(out).code, err], [1, 'not_found', ''])
  })

  t.test('a key in a file, of who may not', async (t) => {
    const file = join(temporaryFolder(t), 'key')
    writeFileSync(file, `${await manage.key({ name: 'a', scopes: ['read'] })}\n`)
    const places = ['--url', manage.url, '--key-file', file]
    const { code, out, err } = await run(['call', 'detect_agent', GPTBOT, ...places], {})
    assert.deepEqual([code, out], [1, ''])
    assert.match(
      err,
      /^gatehouse tools call: the tool detect_agent needs the scopes mcp and detect \(insufficient_scope\)$/m,
    )
  })

  const wrong = [
    [['call', 'detect_agent', '{"ja4": "x"}'], 1, /\n {2}\/arguments\/ja4: /],
    [['call', 'detect_agnet', GPTBOT], 1, /unknown tool.*detect_agent.*\(not_found\)/],
    [['call', 'detect_agent', '{'], 2, /ARGUMENTS is not valid JSON/],
    [['call', 'detect_agent', '"text"'], 1, /\/arguments/],
    [['call'], 2, /TOOL is missing/],
    [['list', '--url', 'file:///etc'], 2, /--url must be http/],
    [['list', '--url', 'http://127.0.0.1:1'], 1, /does not answer: .*ECONNREFUSED|does not answer: bad port/],
  ] as const
  for (const [argv, expected, words] of wrong)
    t.test(`${argv.join(' ')}: is said`, async () => {
      const { code, out, err } = await run(argv, { env })
      assert.deepEqual([code, out], [expected, ''], err)
      assert.match(err, words)
    })
})

test('no key, a wrong one, and one that cannot be', async (t) => {
  const manage = await TestManagement.start(t)
  const env = { GATEHOUSE_URL: manage.url }
  assert.match((await run(['list'], { env })).err, /give --key-file, or GATEHOUSE_KEY/)
  assert.match((await run(['list'], { env: { ...env, GATEHOUSE_KEY: 'a b' } })).err, /no key has/)
  const { code, err } = await run(['list'], { env: { ...env, GATEHOUSE_KEY: 'guessed' } })
  assert.equal(code, 1)
  assert.match(err, /\(invalid_token\)$/m)
  assert.doesNotMatch(err, /guessed/)
})

test('a server that is not Gatehouse, or redirects', async (t) => {
  const server = createServer(({ url }, response) => {
    if (url!.startsWith('/moved')) response.writeHead(302, { location: '/v1/tools' }).end()
    else if (url!.startsWith('/html')) response.end('<h1>hello</h1>')
    else if (url!.startsWith('/hostile'))
      response.writeHead(400).end('{"code": "\\u001b[31m", "detail": "\\u202edetail"}')
    else response.end('{"tools": 1}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close().closeAllConnections())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const ask = (path: string) =>
    run(['list'], { env: { GATEHOUSE_URL: `${url}${path}`, GATEHOUSE_KEY: 'secret-key' } })
  for (const [path, words] of [
    ['/moved', /does not answer: unexpected redirect/],
    ['/html', /does not answer: .*not valid JSON/],
    ['/other', /answers with 200, and not as Gatehouse does/],
    ['/hostile', /\\u\{202e\}detail \(\\u\{1b\}\[31m\)/],
  ] as const) {
    const { code, err } = await ask(path)
    assert.equal(code, 1, path)
    assert.match(err, words)
    assert.doesNotMatch(err, /secret-key/)
  }
})

async function run(
  argv: readonly string[],
  { env = {}, stdin = '' }: { env?: Record<string, string>; stdin?: string | undefined },
): Promise<{ code: number; out: string; err: string }> {
  const io = memoryIo(stdin, { env })
  const code = await runCli(COMMANDS, ['tools', ...argv], io)
  return { code, out: io.out, err: io.err }
}
