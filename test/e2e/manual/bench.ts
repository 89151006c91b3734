import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { TEST_CA } from '../../identity/document-server.ts'
import { type App, startApp } from '../app.ts'
import { type ServingProcess, startProcess } from '../gatehouse.ts'
import { GATEHOUSE, plainEnvironment, temporaryFolder } from '../programs.ts'
import { exampleWith } from './examples.ts'

/** A file whose test does what the example says, with the example's own text or more. */
type Elsewhere = `test/${string}.test.ts` | '.ci/run'

/**
 * The examples of a page in their order: a text that is in no other example of the page, and what runs the example as a
 * reader would, or the file where that is done.
 */
export type Examples = readonly (readonly [
  mark: string,
  how: Elsewhere | ((bench: Bench, example: string) => unknown),
])[]

/** What a reader of a page has: a folder with the key of an administrator, and a gateway in front of an app. */
export interface Bench {
  readonly t: Test
  readonly folder: string
  readonly gate: ServingProcess
  readonly app: App
  /** Runs it as it stands there, but for addresses and names that are another here; it has to end well. */
  shell(example: string, options?: ShellOptions): Promise<Said>
}

interface ShellOptions {
  readonly input?: string
  readonly variables?: NodeJS.ProcessEnv
  /** What stands in the example, and what there is instead. */
  readonly instead?: readonly (readonly [from: string, to: string])[]
}

interface Said {
  readonly out: string
  /** The lines of `out`, each as JSON. */
  readonly json: readonly Json[]
  readonly err: string
}

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
type Json = any

export async function startBench(t: Test): Promise<Bench> {
  const folder = temporaryFolder(t)
  const app = await startApp(t)
  const caFile = join(folder, 'ca.crt')
  writeFileSync(caFile, TEST_CA)
  const variables = {
    GATEHOUSE_PROXY_LISTEN: '127.0.0.1:0',
    GATEHOUSE_MANAGE_LISTEN: '127.0.0.1:0',
    GATEHOUSE_DATA_DIR: join(folder, 'data'),
    GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: 'true',
    GATEHOUSE_WEBHOOKS_ALLOW_PRIVATE_ADDRESSES: 'true',
    NODE_EXTRA_CA_CERTS: caFile,
  }
  const up = exampleWith('README.md', '-- up --upstream')
  const argv = up.replace('http://127.0.0.1:3000', app.url).trim().split(' ')
  const gate = await startProcess(t, argv.slice(argv.indexOf('up')), { folder, variables })
  const port = String(gate.ready['listen']).split(':').at(-1)
  const shim = join(folder, 'gatehouse')
  writeFileSync(shim, `#!/bin/sh\nexec '${process.execPath}' '${GATEHOUSE}' "$@"\n`)
  chmodSync(shim, 0o755)
  const ours = [
    ['npm run -s gatehouse --', 'gatehouse'],
    ['http://127.0.0.1:9080', gate.manage],
    ['https://localhost:8443', `https://localhost:${port}`],
    ['port 443', `port ${port}`],
    ['http://localhost:3000', app.url],
    [' test/', ` ${resolve('test')}/`],
    [' config/', ` ${resolve('config')}/`],
  ] as const
  const shell = async (example: string, { input, variables: more = {}, instead = [] }: ShellOptions = {}) => {
    let script = example
    for (const [from, to] of [...instead, ...ours]) script = script.replaceAll(from, to)
    const env = plainEnvironment(folder, { ...variables, ...more })
    env['PATH'] = `${folder}:${env['PATH']}`
    const child = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', `${CURL}\n${script}`], {
      cwd: folder,
      env,
      detached: true,
      timeout: 180_000,
    })
    child.stdin.on('error', () => undefined).end(input ?? '')
    const [out, err, [status]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit'),
    ])
    endGroup(child)
    assert.equal(status, 0, `${script}\n${out}\n${err}`)
    return {
      ...{ out, err },
      get json() {
        return out
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line) as Json)
      },
    }
  }
  await shell('gatehouse keys create --name me --access admin > key')
  return { t, folder, gate, app, shell }
}

function endGroup({ pid }: ChildProcess): void {
  try {
    process.kill(-pid!, 'SIGKILL')
  } catch {
    // All of it has ended.
  }
}

/** As its reader would see it: a refusal fails, each answer is a line, and a stream is left after a while. */
const CURL = `curl() {
  local ended=0
  case " $* " in *" -N "*) set -- --max-time 3 "$@" ;; esac
  command curl -sS --fail-with-body -w '\\n' "$@" || ended=$?
  [ "$ended" = 0 ] || [ "$ended" = 28 ]
}`
