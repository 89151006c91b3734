import { type ChildProcess, spawn } from 'node:child_process'
import { on } from 'node:events'
import { join } from 'node:path'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { makeKey } from '../../src/manage/auth/make-key.ts'
import { Store } from '../../src/store/store.ts'

/** A whole gateway of two workers, in processes of its own. */
export interface Gateway {
  readonly child: ChildProcess
  readonly port: number
  readonly manage: string
  /** Of an administrator. */
  readonly key: string
}

export interface GatewayOptions {
  /** Its own folder for persistent data. */
  readonly folder: string
  readonly appPort: number
  readonly argv?: readonly string[]
  readonly variables?: NodeJS.ProcessEnv
  /** What `npm run build` makes. */
  readonly isBuilt?: boolean
}

/** Resolves when it says that it is ready. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { folder, appPort, argv = [], variables = {}, isBuilt = false } = options
  const key = await keyIn(folder)
  const program = new URL(isBuilt ? '../../dist/bin.js' : '../../src/bin.js', import.meta.url).pathname
  const where = ['--listen', '127.0.0.1:0', '--manage', '127.0.0.1:0', '--data', folder]
  const given = ['up', '--workers', '2', '--upstream', `http://127.0.0.1:${appPort}`, ...where, ...argv]
  const child = spawn(process.execPath, [program, ...given], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...variables },
  })
  let text = ''
  for await (const [chunk] of on(child.stderr, 'data', { close: ['end'] })) {
    text += chunk
    const ready = text.split('\n').find((line) => line.includes('"message":"ready"') && line.endsWith('}'))
    if (ready === undefined) continue
    child.stderr.resume()
    const { listen, manage } = JSON.parse(ready)
    return { child, port: Number(String(listen).split(':').at(-1)), manage: `http://${manage}`, key }
  }
  throw new Error(`the gateway has not become ready: ${text}`)
}

/** Asks its API. */
export async function post({ manage, key }: Gateway, path: string, body: unknown) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(manage + path, { method: 'POST', headers, body: JSON.stringify(body) })
  // biome-ignore lint/suspicious/noExplicitAny: what the API answers is tested elsewhere
  const answer = (await response.json()) as any
  if (!response.ok) throw new Error(JSON.stringify(answer))
  return answer
}

async function keyIn(folder: string): Promise<string> {
  const store = await Store.open(`sqlite:${join(folder, 'gatehouse.db')}`)
  const wanted = {
    name: 'bench',
    apps: '*' as const,
    scopes: ['admin'],
    plan: 'unlimited',
    expiresAtMs: null,
  } as const
  const { key } = await makeKey(store, wanted, COMMAND_LINE, Date.now())
  await store.close()
  return key
}
