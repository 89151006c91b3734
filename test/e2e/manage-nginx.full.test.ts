import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'
import { startGatehouse } from './gatehouse.ts'
import { freePort, untilOpen } from './ports.ts'
import { endWith, plainEnvironment, skipped, temporaryFolder } from './programs.ts'

const ADMIN_KEY = 'an admin key of this test'

for (const scheme of ['http', 'https'] as const)
  test(`behind nginx over ${scheme} each client has a throttle of its own`, {
    skip: skipped('nginx'),
  }, async (t) => {
    const gatehouse = await startGatehouse(t, {
      command: 'up',
      upstream: 'http://127.0.0.1:9',
      variables: {
        ...(scheme === 'https' ? await certificateIn(temporaryFolder(t)) : {}),
        GATEHOUSE_MANAGE_TRUSTED_PROXIES: '127.0.0.1',
        GATEHOUSE_ADMIN_KEY: ADMIN_KEY,
        GATEHOUSE_AUTH_FAILURES_PER_MINUTE: '3',
      },
    })
    const port = await startNginx(t, scheme, new URL(gatehouse.manage).host)
    const ask = (localAddress: string, key: string) =>
      asked(port, localAddress, { authorization: `Bearer ${key}`, 'x-forwarded-for': '127.0.0.3' })
    const guesses: number[] = []
    for (let time = 0; time < 5; time++) guesses.push((await ask('127.0.0.2', 'wrong')).status)
    assert.deepEqual(guesses, [401, 401, 401, 429, 429])
    assert.equal((await ask('127.0.0.3', 'wrong')).status, 401)
    const { status, body } = await ask('127.0.0.4', ADMIN_KEY)
    assert.equal(status, 200)
    const { audit } = JSON.parse(body)
    assert.deepEqual(
      audit.map(({ action, address }: Record<string, string>) => [action, address]),
      [['throttleAuthentication', '127.0.0.2']],
    )
  })

/** It keeps one connection to the management port, for all its clients. */
async function startNginx(t: Test, scheme: string, host: string): Promise<number> {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'www'))
  const port = await freePort()
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const config = `
    daemon off; master_process off; pid ${folder}/pid; error_log stderr crit;
    events { }
    http {
      access_log off;
      ${places.map((place) => `${place}_temp_path ${folder}/${place};`).join(' ')}
      upstream gatehouse { server ${host}; keepalive 1; }
      server {
        listen 127.0.0.1:${port};
        location / {
          proxy_pass ${scheme}://gatehouse;
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          proxy_set_header Host ${host};
          proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }
      }
    }`
  writeFileSync(join(folder, 'nginx.conf'), config)
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], {
    env: plainEnvironment(folder),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  endWith(t, child)
  await untilOpen(port, child)
  return port
}

async function asked(port: number, localAddress: string, headers: Readonly<Record<string, string>>) {
  const path = '/v1/audit?action=throttleAuthentication'
  const sent = request({ port, localAddress, path, headers, host: '127.0.0.1', agent: new Agent() }).end()
  const [response] = await once(sent, 'response')
  return { status: response.statusCode as number, body: await text(response) }
}

async function certificateIn(folder: string): Promise<NodeJS.ProcessEnv> {
  const { certificate, key } = await testLeaf(await testCa(), ['localhost'])
  const [certificateFile, keyFile] = [join(folder, 'manage.crt'), join(folder, 'manage.key')]
  writeFileSync(certificateFile, certificate)
  writeFileSync(keyFile, key, { mode: 0o600 })
  return { GATEHOUSE_MANAGE_TLS_CERT_FILE: certificateFile, GATEHOUSE_MANAGE_TLS_KEY_FILE: keyFile }
}
