import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Owner } from '../store/databases.ts'
import type { TestManagement } from './management.ts'

// The conformance suite of the protocol's authors: what it asks of any server is asked of ours as it is; what it asks of
// things that are only there to be tried, of a server that has them, behind the same endpoint.

export const OF_ANY_SERVER = [
  ...['server-initialize', 'ping', 'tools-list', 'resources-list', 'prompts-list', 'caching'],
  ...['dns-rebinding-protection', 'http-header-validation', 'sep-2164-resource-not-found'],
  'input-required-result-unsupported-methods',
]

export const WITH_FIXTURES = [
  ...['server-stateless', 'completion-complete', 'json-schema-2020-12', 'logging-set-level'],
  ...['tools-call-simple-text', 'tools-call-image', 'tools-call-audio', 'tools-call-embedded-resource'],
  ...['tools-call-mixed-content', 'tools-call-error', 'tools-call-with-progress', 'tools-call-with-logging'],
  ...['resources-read-text', 'resources-read-binary', 'resources-templates-read'],
  ...[
    'prompts-get-simple',
    'prompts-get-with-args',
    'prompts-get-embedded-resource',
    'prompts-get-with-image',
  ],
  'http-custom-header-server-validation',
  ...[
    'basic-elicitation',
    'basic-sampling',
    'basic-list-roots',
    'request-state',
    'multiple-input-requests',
  ].map(asking),
  ...['multi-round', 'missing-input-response', 'non-tool-request', 'result-type', 'tampered-state'].map(
    asking,
  ),
  ...['capability-check', 'ignore-extra-params', 'validate-input'].map(asking),
]

/** What cannot be, and why. */
export const IMPOSSIBLE: Readonly<Record<string, string>> = {
  'server-session-lifecycle': 'there are no sessions: nothing to check',
  'server-sse-polling': 'the same, and no events that are kept for who comes back',
  'server-sse-multiple-streams': 'the same',
  'tools-call-sampling': 'the server asks the client by its own request, whose answer belongs to a session',
  'tools-call-elicitation': 'likewise',
  'elicitation-sep1034-defaults': 'likewise',
  'elicitation-sep1330-enums': 'likewise',
  'resources-subscribe': 'who subscribes has to be known later; today subscriptions/listen is for that',
  'resources-unsubscribe': 'likewise',
}
/** Extensions that Gatehouse does not have: it says so in its capabilities, and its tasks are tools. */
export const EXTENSIONS = /^(?:tasks-|sep-2640-skills-)/

function asking(name: string): string {
  return `input-required-result-${name}`
}

/** Every scenario there is, and whether all of it has passed. */
export async function conformance(t: Owner, manage: TestManagement): Promise<ReadonlyMap<string, boolean>> {
  const url = await withKey(t, manage)
  const folder = manage.folder
  const asked = [
    PROGRAM,
    'server',
    '--url',
    url,
    '--suite',
    'all',
    '--timeout',
    '10000',
    '--output-dir',
    folder,
  ]
  const { stdout } = await run(process.execPath, asked, { maxBuffer: 64 * 1_048_576 }).catch(
    // It ends with 1 as soon as one has failed, which those do that cannot be.
    (error: Error & { stdout: string }) => error,
  )
  const lines = [...stdout.matchAll(/^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed/gm)]
  assert.ok(lines.length > 50, stdout.slice(-2_000))
  return new Map(lines.map(([, name, passed, failed]) => [name!, Number(passed) > 0 && failed === '0']))
}

/** The suite has no word for a key: what it asks goes on with one. */
async function withKey(t: Owner, { url, adminKey }: TestManagement): Promise<string> {
  const { port } = new URL(url)
  const server = createServer((asked, answer) => {
    const headers = { ...asked.headers, authorization: `Bearer ${adminKey}` }
    const onward = request(
      { host: '127.0.0.1', port, method: asked.method, path: asked.url, headers },
      (answered) => {
        answer.writeHead(answered.statusCode!, answered.rawHeaders)
        answered.pipe(answer)
      },
    )
    onward.on('error', () => answer.destroy())
    answer.on('close', () => onward.destroy())
    asked.pipe(onward)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}

const run = promisify(execFile)
const PROGRAM = resolve('node_modules/@modelcontextprotocol/conformance/dist/index.js')
