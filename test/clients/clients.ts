import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { Agent, fetch } from 'undici'
import type { RunningGatehouse } from '../e2e/gatehouse.ts'
import { endWith, plainEnvironment, run, skipped, skippedLibrary, temporaryFolder } from '../e2e/programs.ts'
import type { Answer, Ask } from './ask.ts'
import { chromiumPage, firefoxPage, pageSends } from './browsers.ts'
import { curlClient } from './curl-client.ts'
import { sendByFetch } from './fetch-client.ts'
import { http2Client } from './http2-client.ts'

/** A program that speaks HTTP/2, on one connection if it can. */
export interface Client {
  readonly name: string
  readonly skip: string | false
  /** What it can do beside all that every client can. */
  readonly can: readonly Ability[]
  start(t: Test, gate: RunningGatehouse): Promise<StartedClient>
}

export interface StartedClient {
  send(asks: readonly Ask[]): Promise<readonly Answer[]>
}

/** Not every client can do or show everything. */
export type Ability =
  /** Compressed bodies are given as they came. */
  | 'raw'
  /** The trailers of an answer are shown. */
  | 'trailers'
  | 'send-trailers'
  /** A body may have no length. */
  | 'stream'
  | 'expect'
  /** A cancelled request leaves the connection open. */
  | 'reset'
  /** An answer is read although its stream is reset before the request is whole. */
  | 'early'
  /** Requests under way outlive a GOAWAY. */
  | 'goaway'

/** Debian's, which has Debian's libraries. */
const PYTHON = '/usr/bin/python3'
const HTTPX = '/usr/lib/python3/dist-packages/httpx/__init__.py'
const H2 = '/usr/lib/python3/dist-packages/h2/__init__.py'

export const PROGRAMS: readonly Client[] = [
  {
    name: 'curl',
    skip: skipped('curl'),
    can: ['raw', 'trailers', 'stream', 'expect', 'early', 'goaway'],
    start: async (t, gate) => curlClient(t, gate.url, gate.caFile),
  },
  {
    name: 'Go net/http',
    skip: skipped('go'),
    can: ['raw', 'trailers', 'send-trailers', 'stream', 'expect', 'reset', 'early', 'goaway'],
    start: async (t, gate) => driver(t, builtGo(), [gate.url, gate.caFile]),
  },
  {
    name: 'Java HttpClient',
    skip: skipped('java', 'javac') || skippedLibrary(jetty('util-ajax'), 'libjetty9-java'),
    // JDK 17 drops all its requests at a GOAWAY, and does not end an upload when its stream is reset.
    can: ['raw', 'stream', 'expect', 'reset'],
    start: async (t, gate) => {
      const folder = temporaryFolder(t)
      const paths = ['-cp', [folder, jetty('util-ajax'), jetty('util')].join(':')]
      const env = plainEnvironment(folder)
      const built = await run('javac', [...paths, '-d', folder, resolve('test/clients/Client.java')], { env })
      if (built.status !== 0) throw new Error(built.stderr)
      return driver(t, 'java', [...paths, 'Client', gate.url, gate.caFile])
    },
  },
  {
    name: 'Python httpx',
    skip: skippedLibrary(HTTPX, 'python3-httpx') || skippedLibrary(H2, 'python3-h2'),
    // h2 4.1 takes every GOAWAY for the end, and httpcore 0.16 does not end an upload when its stream is reset.
    can: ['raw', 'stream'],
    start: async (t, gate) => driver(t, PYTHON, [resolve('test/clients/client.py'), gate.url, gate.caFile]),
  },
  {
    name: 'node:http2',
    skip: false,
    can: ['raw', 'trailers', 'send-trailers', 'stream', 'expect', 'reset', 'early', 'goaway'],
    start: async (t, gate) => {
      const client = await http2Client(gate.url, gate.ca)
      t.teardown(client.end)
      return client
    },
  },
  {
    name: 'undici',
    skip: false,
    // Its sessions of node:http2 reject answers while more than 10 MB of a body wait to be sent.
    can: ['stream', 'reset', 'goaway'],
    start: async (t, gate) => {
      const dispatcher = new Agent({
        allowH2: true,
        connections: 1,
        keepAliveTimeout: 60_000,
        connect: { ca: gate.ca },
      })
      t.teardown(() => dispatcher.destroy())
      const send = (url: string, init: object) => fetch(url, { ...init, dispatcher })
      return { send: (asks) => sendByFetch(gate.url, asks, send as unknown as typeof globalThis.fetch) }
    },
  },
]

export const BROWSERS: readonly Client[] = [
  {
    name: 'Chromium',
    skip: skipped('chromium'),
    can: ['stream', 'reset', 'early', 'goaway'],
    start: async (t, gate) => page(await chromiumPage(t, `${gate.url}/`)),
  },
  {
    name: 'Firefox',
    skip: skipped('firefox-esr'),
    can: ['reset', 'early', 'goaway'],
    start: async (t, gate) => page(await firefoxPage(t, `${gate.url}/`)),
  },
]

function page(evaluate: (script: string) => Promise<unknown>): StartedClient {
  return { send: (asks) => pageSends(evaluate, asks) }
}

/** A program that reads requests from its standard input and writes answers, a line for each list. */
function driver(t: Test, program: string, argv: readonly string[]): StartedClient {
  const child = spawn(program, argv, {
    env: plainEnvironment(temporaryFolder(t)),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  endWith(t, child)
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return {
    send: async (asks) => {
      child.stdin.write(`${JSON.stringify(asks)}\n`)
      const { value, done } = await lines.next()
      if (done) throw new Error(`${program} has ended`)
      return JSON.parse(value)
    },
  }
}

function builtGo(): string {
  const folder = resolve('.tap/clients')
  mkdirSync(folder, { recursive: true })
  const program = join(folder, 'go-client')
  const env = {
    ...{ PATH: process.env['PATH'], HOME: folder, GOCACHE: join(folder, 'cache') },
    ...{ GO111MODULE: 'off', CGO_ENABLED: '0' },
  }
  execFileSync('go', ['build', '-o', program, 'test/clients/go/main.go'], { env })
  return program
}

function jetty(part: string): string {
  return `/usr/share/java/jetty9-${part}.jar`
}
