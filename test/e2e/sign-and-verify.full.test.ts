import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Test, test } from 'tap'
import { type App, startApp } from './app.ts'
import { startGatehouse } from './gatehouse.ts'
import { endWith, GATEHOUSE, plainEnvironment, run, temporaryFolder } from './programs.ts'

/** The commands that a developer types to test signed requests at a gateway. */
test('what "sign" sends, a real gateway takes as "verify" says it would', async (t) => {
  const app = await startApp(t)
  const folder = temporaryFolder(t)
  const policy = join(folder, 'policy.yaml')
  writeFileSync(policy, 'unknown_signer: {wait: 5s}\n')
  const gate = await startGatehouse(t, {
    ...{ command: 'proxy', upstream: app.url, argv: ['--policy', policy], settings: [] },
    variables: { GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: 'true' },
  })
  for (const algorithm of ['ed25519', 'ecdsa-p256-sha256', 'rsa-pss-sha512']) {
    const file = join(folder, `${algorithm}.jwk`)
    const thumbprint = (await ran(folder, ['sign', 'key', file, '--algorithm', algorithm])).stdout.trim()
    const agent = await served(t, folder, ['sign', 'directory', '--key', file, '--serve', '127.0.0.1:0'])
    const given = ['sign', 'request', `${gate.url}/a?b=c`, '--key', file, '--agent', agent]
    const table: readonly (readonly [how: readonly string[], why: string | null])[] = [
      [[], null],
      [['--form', 'string'], null],
      [['--cover', '@method', '--cover', '@path', '--cover', '@query'], null],
      [['--created=-2h'], 'expired'],
      [['--authority', 'other.example'], 'wrong'],
    ]
    for (const [how, why] of table) {
      const title = `${algorithm} ${how.join(' ')}`
      const sent = await ran(folder, [...given, ...how, '--send', '--ca', gate.caFile])
      assert.equal(sent.status, 0, sent.stderr)
      const { verified, identity, key, conflict } = toldOf(app)
      if (why === null)
        assert.deepEqual([verified, identity, key], ['web-bot-auth', agent, thumbprint], title)
      else assert.deepEqual([verified, conflict], [undefined, 'signature-failed'], title)
      const made = await ran(folder, [...given, ...how, '--as', 'json'])
      const said = await ran(folder, ['verify', '-', '--allow-private'], made.stdout)
      assert.equal(said.status, why === null ? 0 : 1, said.stdout)
      assert.match(said.stdout, why === null ? /\nproven: / : new RegExp(`\\nnot proven: ${why}\\n`), title)
    }
  }
  const file = join(folder, 'ed25519.jwk')
  const agent = await served(t, folder, ['sign', 'directory', '--key', file, '--serve', '127.0.0.1:0'])
  const given = ['sign', 'request', gate.url, '--key', file, '--agent', agent, '--nonce', 'once']
  for (const expected of ['web-bot-auth', undefined]) {
    await ran(folder, [...given, '--send', '--ca', gate.caFile])
    assert.equal(toldOf(app).verified, expected)
  }
})

function toldOf(app: App) {
  const { rawHeaders } = app.asked.at(-1)!
  const told = (name: string) => {
    const at = rawHeaders.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === `x-agent-${name}`)
    return at === -1 ? undefined : rawHeaders[at + 1]
  }
  const [verified, identity, key] = [told('verified'), told('identity'), told('key')]
  return { verified, identity, key, conflict: told('conflict') }
}

/** Where it says that it serves. */
async function served(t: Test, folder: string, argv: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [GATEHOUSE, ...argv], {
    env: plainEnvironment(folder),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  endWith(t, child)
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  return line
}

function ran(folder: string, argv: readonly string[], input = '') {
  return run(process.execPath, [GATEHOUSE, ...argv], { env: plainEnvironment(folder), input })
}
