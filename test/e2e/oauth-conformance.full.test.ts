import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { type Test, test } from 'tap'
import { FormBrowser } from '../manage/form-browser.ts'
import { startApp } from './app.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { freePort } from './ports.ts'
import { endWith, plainEnvironment, temporaryFolder } from './programs.ts'

const ADMIN_KEY = 'the first key of an administrator'
const ANNA = { email: 'anna@example.com', password: 'a phrase of four words' }

// The suite says it is `none` to any server that accepts `none` from any client, also with a client that has a secret; those have
// to prove themselves (RFC 6749 §3.2.1), and are refused. So it gets a client without one.
test('the suite of MCP for authorization servers finds nothing wrong, whatever the token is for', async (t) => {
  const app = await startApp(t)
  const gatehouse = await startGatehouse(t, {
    command: 'up',
    upstream: app.url,
    argv: ['--workers', '1'],
    variables: { GATEHOUSE_ADMIN_KEY: ADMIN_KEY },
  })
  const port = await freePort()
  await created(gatehouse, '/v1/users', { ...ANNA, scopes: ['read', 'mcp'] })
  const { client_id } = await created(gatehouse, '/v1/clients', {
    ...{ name: 'the suite', scopes: ['read', 'mcp'], grant_types: ['authorization_code'] },
    ...{ token_endpoint_auth_method: 'none', redirect_uris: [`http://127.0.0.1:${port}/callback`] },
  })
  for (const resource of ['v1', 'mcp']) {
    const { status, said } = await runSuite(t, gatehouse.manage, [
      ...['--url', gatehouse.manage, '--client-id', client_id as string, '--port', String(port)],
      ...['--resource', `${gatehouse.manage}/${resource}`],
    ])
    assert.equal(status, 0, said)
    assert.match(said, /authorization-server-metadata-endpoint: 2 passed, 0 failed/)
    assert.match(said, /authorization-code-grant: 1 passed, 0 failed/)
    assert.doesNotMatch(said, /WARNING|SKIPPED/)
  }
})

/** Does what a user is asked to: opens the address, signs in and consents. */
async function runSuite(t: Test, origin: string, argv: readonly string[]) {
  const env = plainEnvironment(temporaryFolder(t))
  const suite = spawn('conformance', ['authorization', ...argv], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  endWith(t, suite)
  const ended = once(suite, 'close')
  let said = ''
  suite.stderr.on('data', (chunk) => {
    said += chunk
  })
  for await (const line of createInterface({ input: suite.stdout })) {
    said += `${line}\n`
    if (line.startsWith(`${origin}/oauth/authorize?`)) await consent(origin, line)
  }
  const [status] = await ended
  return { status, said }
}

async function consent(origin: string, address: string): Promise<void> {
  const browser = await new FormBrowser(origin).open(address)
  await browser.submit('sign-in', ANNA)
  await browser.submit('allow')
  const { status } = await fetch(browser.away!)
  assert.equal(status, 200)
}

async function created({ manage }: RunningGatehouse, path: string, body: unknown) {
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' }
  const response = await fetch(manage + path, { method: 'POST', headers, body: JSON.stringify(body) })
  const made = (await response.json()) as Readonly<Record<string, unknown>>
  assert.equal(response.status, 201, JSON.stringify(made))
  return made
}
