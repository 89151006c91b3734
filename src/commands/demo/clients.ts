import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pathOf } from './app.ts'

/** The gate's address and the clients' credentials. */
export interface DemoPlace {
  /** `https://localhost:8443`. */
  readonly url: string
  readonly caFile: string
  /** Id and key of the crawler that signs its requests. */
  readonly agent: string
  readonly keyFile: string
  readonly folder: string
}

export interface DemoClient {
  readonly name: string
  readonly about: string
  /** Starts with the demo. */
  readonly isUsual: boolean
  /** Why it cannot run here; `null`: it can. */
  readonly absent: string | null
  readonly start: (place: DemoPlace) => RunningClient
}

export interface RunningClient {
  /** Resolves when the client has ended completely. */
  stop(): Promise<void>
}

/** Real programs. Nothing about them is simulated, except for the false headers of the pretender. */
export function demoClients(env: NodeJS.ProcessEnv): readonly DemoClient[] {
  return [
    ofNode('node', "Node's own fetch, as scripts use it", null),
    ofProgram(env, 'curl', 'curl, as it is', ({ url, caFile }) => [
      '-s',
      '-o',
      '/dev/null',
      '--max-time',
      '5',
      '--cacert',
      caFile,
      `${url}${pathOf('curl')}/api`,
    ]),
    ofProgram(env, 'python3', "Python's urllib", ({ url, caFile }) => [
      '-c',
      'import ssl,sys,urllib.request as r\nr.urlopen(sys.argv[1],context=ssl.create_default_context(cafile=sys.argv[2]),timeout=5).read()',
      `${url}${pathOf('python3')}/api`,
      caFile,
    ]),
    ofProgram(env, 'wget', 'wget', ({ url, caFile }) => [
      '-q',
      '-O',
      '/dev/null',
      '--timeout=5',
      '--tries=1',
      `--ca-certificate=${caFile}`,
      `${url}${pathOf('wget')}/`,
    ]),
    ofNode('mcp', 'an MCP client, of the AI SDK', absentPackage('@ai-sdk/mcp')),
    ofNode('crawler', 'a crawler that signs what it asks (Web Bot Auth)', null),
    ofNode('pretender', 'a script that says it is Chrome', null),
    {
      ...ofProgram(env, 'chromium', 'a real browser, without a window', ({ url, folder }) => [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--ignore-certificate-errors',
        '--no-first-run',
        `--user-data-dir=${join(folder, 'chromium')}`,
        '--timeout=5000',
        '--dump-dom',
        `${url}${pathOf('chromium')}/`,
      ]),
      isUsual: false,
    },
  ]
}

/** A client with one long-running process. */
function ofNode(name: string, about: string, absent: string | null): DemoClient {
  return {
    name,
    about,
    isUsual: true,
    absent,
    start: ({ url, caFile, agent, keyFile }) => {
      const child = spawn(process.execPath, [CLIENT_PROCESS, name, url + pathOf(name), agent, keyFile], {
        env: { ...plain(process.env), NODE_EXTRA_CA_CERTS: caFile },
        stdio: ['pipe', 'ignore', 'ignore'],
      })
      return { stop: () => ended(child) }
    },
  }
}

/** A client that starts one process per request. */
function ofProgram(
  env: NodeJS.ProcessEnv,
  name: string,
  about: string,
  argv: (place: DemoPlace) => readonly string[],
): DemoClient {
  return {
    name,
    about,
    isUsual: true,
    absent: isThere(env, name) ? null : 'is not installed',
    start: (place) => {
      let child: ChildProcess | null = null
      const ask = () => {
        if (child !== null) return
        child = spawn(name, argv(place), { env: plain(process.env), stdio: 'ignore' })
        child.on('error', () => undefined)
        child.on('close', () => {
          child = null
        })
      }
      ask()
      const timer = setInterval(ask, EVERY_MS)
      return {
        stop: async () => {
          clearInterval(timer)
          if (child !== null) await ended(child)
        },
      }
    },
  }
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => {
    child.on('close', () => resolve())
    child.on('error', () => resolve())
    child.kill('SIGKILL')
  })
}

/** Without proxy settings and without the gateway's variables. */
function plain({ PATH, HOME, LANG, TMPDIR, NODE_COMPILE_CACHE }: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { PATH, HOME, LANG, TMPDIR, NODE_COMPILE_CACHE }
}

function isThere({ PATH = '' }: NodeJS.ProcessEnv, program: string): boolean {
  return PATH.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** The package is a development dependency: it is missing in an installed package. */
function absentPackage(name: string): string | null {
  try {
    findPackageJSON(name, import.meta.url)
    return null
  } catch {
    return 'is not installed'
  }
}

const CLIENT_PROCESS = fileURLToPath(
  new URL(`./client-process${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)
const EVERY_MS = 1_500
