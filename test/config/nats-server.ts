import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { until } from '../contract/bus.ts'
import { folderFor } from '../e2e/engines.ts'
import { freePort } from '../e2e/ports.ts'

/** Of the users that config/nats.conf has. */
export const PASSWORDS = {
  manage: 'what managers say',
  proxy: 'what proxies say',
  'proxy-shop': 'what proxies of one app say',
}

/** A NATS server with config/nats.conf as `change` leaves it. Resolves with its port. */
export async function startGuardedNats(t: Test, change: (text: string) => string): Promise<number> {
  const folder = folderFor(t, 'nats')
  const port = await freePort()
  const text = readFileSync('config/nats.conf', 'utf8')
    .replace('port: 4222', `port: ${port}\nhost: "127.0.0.1"`)
    .replace('store_dir: /data', `store_dir: "${join(folder, 'store')}"`)
  writeFileSync(join(folder, 'nats.conf'), change(text))
  const env = {
    PATH: process.env['PATH'],
    GATEHOUSE_NATS_MANAGE_PASSWORD: JSON.stringify(PASSWORDS.manage),
    GATEHOUSE_NATS_PROXY_PASSWORD: JSON.stringify(PASSWORDS.proxy),
    GATEHOUSE_NATS_SHOP_PASSWORD: JSON.stringify(PASSWORDS['proxy-shop']),
  }
  const child = spawn('nats-server', ['-c', join(folder, 'nats.conf')], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk
  })
  child.on('exit', (code) => code !== null && t.fail(said))
  await until(() => said.includes('Server is ready'))
  return port
}
