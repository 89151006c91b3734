import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'
import { endWith, GATEHOUSE, plainEnvironment, temporaryFolder } from './programs.ts'

/** A gatehouse in a process of its own, started as its user starts it. */
export interface RunningGatehouse {
  readonly pid: number
  readonly port: number
  readonly url: string
  /** Where its management plane is. */
  readonly manage: string
  /** Who signed its certificate, which is for localhost: PEM, and the file it is in. */
  readonly ca: string
  readonly caFile: string
  /** What it has written to its log. */
  said(): string
  /** As its user ends it; resolves when it is gone. */
  stop(): Promise<void>
  kill(): Promise<void>
}

export interface GatehouseOptions {
  /** `up` has workers in processes of their own, `proxy` has none. */
  readonly command?: 'up' | 'proxy'
  /** Unless the settings say it. */
  readonly upstream?: string
  readonly argv?: readonly string[]
  /** Lines of the `proxy` section of its configuration file. */
  readonly settings?: readonly string[]
  /** Settings that are no part of `proxy`. */
  readonly variables?: NodeJS.ProcessEnv
  /** Where the TLS secrets are written to. */
  readonly secretsFile?: string
  /** The errors that the test brings about. */
  readonly expects?: RegExp
}

/** Resolves once it says that it is ready; it ends with the test. */
export async function startGatehouse(t: Test, options: GatehouseOptions): Promise<RunningGatehouse> {
  const { command = 'proxy', upstream, argv = [], settings = [] } = options
  const folder = temporaryFolder(t)
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content, { mode: 0o600 })
    return join(folder, name)
  }
  const caFile = file('ca.crt', ca.certificate)
  const config = file(
    'gatehouse.yaml',
    ['proxy:', ...(settings.length > 0 ? settings : ['{}']), ''].join('\n  '),
  )
  const given = [
    ...['--listen', '127.0.0.1:0', '--manage', '127.0.0.1:0', '--config', config],
    ...(upstream === undefined ? [] : ['--upstream', upstream]),
    ...['--cert', file('tls.crt', leaf.certificate), '--key', file('tls.key', leaf.key)],
    ...argv,
  ]
  const running = await startProcess(t, [command, ...given], { ...options, folder })
  const port = Number(String(running.ready['listen']).split(':').at(-1))
  return { ...running, port, url: `https://localhost:${port}`, ca: ca.certificate, caFile }
}

/** Any command that serves. */
export interface ServingProcess extends Pick<RunningGatehouse, 'pid' | 'manage' | 'said' | 'stop'> {
  /** What it said when it was ready. */
  readonly ready: Readonly<Record<string, unknown>>
  /** As when its machine is lost; resolves when it is gone. */
  kill(): Promise<void>
}

export async function startProcess(
  t: Test,
  argv: readonly string[],
  {
    folder,
    variables = {},
    secretsFile,
    expects,
  }: Pick<GatehouseOptions, 'variables' | 'secretsFile' | 'expects'> & { readonly folder: string },
): Promise<ServingProcess> {
  const spy = secretsFile === undefined ? [] : ['--import', SPY]
  const child = spawn(process.execPath, [...spy, GATEHOUSE, ...argv], {
    cwd: folder,
    env: plainEnvironment(folder, { E2E_TLS_SECRETS: secretsFile, ...variables }),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  let isStopping = false
  endWith(t, child) // workers end by themselves when the primary is gone
  t.teardown(() => {
    isStopping = true
  })
  child.on('exit', (code, signal) => {
    if (!isStopping) t.fail(`gatehouse ended (${signal ?? code}): ${said}`)
  })
  const ready = new Promise<string>((found) => {
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      said += chunk
      if (/"level":"error"/.test(chunk) && !expects?.test(chunk))
        t.fail(`gatehouse reports an error: ${chunk}`)
      const line = said.split('\n').find((line) => line.includes('"message":"ready"') && line.endsWith('}'))
      if (line !== undefined) found(line)
    })
  })
  const line = await Promise.race([ready, once(child, 'exit').then(() => assert.fail(`it ended: ${said}`))])
  const end = async (signal: NodeJS.Signals) => {
    isStopping = true
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill(signal)
    await once(child, 'exit')
  }
  const facts: Record<string, unknown> = JSON.parse(line)
  return {
    pid: child.pid!,
    manage: `http://${facts['manage']}`,
    ready: facts,
    said: () => said,
    stop: () => end('SIGINT'),
    kill: () => end('SIGKILL'),
  }
}

const SPY = new URL('log-tls-secrets.ts', import.meta.url).href
const ca = await testCa()
const leaf = await testLeaf(ca, ['localhost'])
