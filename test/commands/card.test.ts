import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { DocumentServer } from '../identity/document-server.ts'
import { newSigner } from '../identity/signer.ts'
import { memoryIo } from './memory-io.ts'

const { jwk, key } = newSigner('ed25519')

test('a card is shown as it is read, with its keys', async (t) => {
  const server = await DocumentServer.start(t, 'http')
  const url = server.url('/bot', '127.0.0.1')
  server.serveJson('/bot', {
    ...{ client_id: url, client_name: 'Bot', jwks: { keys: [jwk] } },
    web_bot_auth: { purpose: 'ai-train', trigger: 'crawler', 'rate-control': 7 },
  })
  const { code, out } = await run([url, '--allow-private'])
  assert.equal(code, 0, out)
  assert.match(out, /^ignored +web_bot_auth\.rate-control must be a text of 1 to 300/m)
  assert.match(out, /^in policies +training$/m)
  assert.match(out, /^trigger +crawler$/m)
  assert.ok(out.includes(`keys          ${key.thumbprint} at ${url}`), out)
  const { card, keys, why } = JSON.parse((await run([url, '--allow-private', '--json'])).out)
  assert.deepEqual([card.purposes, keys, why], [['training'], [key.thumbprint], null])
})

test('an agent is found in the signatures by its id', async (t) => {
  const server = await DocumentServer.start(t, 'http')
  const origin = server.url('', '127.0.0.1')
  const file = join(temporaryFolder(t), 'own.yaml')
  const agent = { id: 'our-bot', name: 'Our bot', kind: 'agent', category: 'crawler' }
  const signatures = [{ user_agent: 'OurBot', source: 'us', date: '2026-11-01' }]
  const verification = { signature_agent: origin.replace('http:', 'https:') }
  writeFileSync(file, JSON.stringify([{ ...agent, verification, signatures }]))
  const { code, out } = await run(['our-bot', '--from', file])
  assert.equal(code, 1, out)
  assert.match(out, /^card +none: https:.* is not on the public internet$/m)
  assert.match(
    (await run(['our-bott', '--from', file])).err,
    /unknown agent "our-bott" \(did you mean "our-bot"\?\)/,
  )
  assert.match((await run(['gptbot'])).err, /name no key directory of gptbot/)
  assert.match((await run(['http://agent.example'])).err, /must be a URL with https/)
})

async function run(argv: readonly string[]) {
  const io = memoryIo('', { columns: 200 })
  const code = await runCli(COMMANDS, ['card', ...argv], io)
  return { code, out: io.out, err: io.err }
}
