import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Test, test } from 'tap'
import { exampleOf } from '../../src/manage/http/json-schema.ts'
import {
  type DocumentedOperation,
  type OpenApiDocument,
  openApiDocument,
} from '../../src/manage/api/openapi.ts'
import type { AnyOperation } from '../../src/manage/http/operation.ts'
import { VERSIONS } from '../../src/manage/api/operations.ts'
import { TestManagement } from './management.ts'

/** One way to ask for an operation, and what may come of it. */
interface Case {
  readonly title: string
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: string
  readonly statuses: readonly number[]
}

for (const version of VERSIONS) {
  test(`Prism, which knows only the document of ${version.prefix}, has nothing against any answer`, async (t) => {
    const { operations, prefix } = version
    const manage = await TestManagement.start(t, { knows: true })
    const document = openApiDocument(version, manage.url)
    const prism = await startPrism(t, document, `${manage.url}${prefix}`)
    const tokens = { admin: manage.adminKey, none: await manage.key({ scopes: [] }) }
    let found = 0
    for (const operation of operations) {
      const documented = document.paths[operation.path]![operation.method.toLowerCase()]!
      for (const each of casesOf(operation, documented, document, tokens)) {
        const name = `${operation.id}, ${each.title}`
        const response = await fetch(`${prism}${pathOf(operation.path, documented)}${each.query ?? ''}`, {
          method: operation.method,
          headers: { authorization: `Bearer ${tokens.admin}`, ...asJson(operation), ...each.headers },
          ...(each.body === undefined ? {} : { body: each.body }),
        })
        const text = await response.text()
        assert.equal(response.headers.get('x-api-stability'), version.isBeta ? 'beta' : null, name)
        assert.ok(each.statuses.includes(response.status), `${name}: ${response.status} ${text}`)
        const violations = JSON.parse(response.headers.get('sl-violations') ?? '[]') as Violation[]
        found += violations.length
        // A request that breaks the contract is what some of these are for.
        assert.deepEqual(
          violations.filter(({ location }) => location[0] === 'response'),
          [],
          `${name}: ${text}`,
        )
        if (each.title === 'as in the example')
          assert.deepEqual(violations, [], `${name}: the example is none`)
      }
    }
    assert.ok(found > operations.length, 'it looks')
    assert.deepEqual(manage.failures, [])
  })
}

/** What can be listened to never ends. */
function asJson({ stream }: AnyOperation): Readonly<Record<string, string>> {
  return stream === null ? {} : { accept: 'application/json' }
}

interface Violation {
  readonly location: readonly string[]
  readonly message: string
}

function casesOf(
  { id, method, path, body, bodyBytesMax, query, examples, status, problems, files }: AnyOperation,
  { requestBody }: DocumentedOperation,
  { components }: OpenApiDocument,
  tokens: { readonly none: string },
): readonly Case[] {
  const shownQuery = `?${new URLSearchParams(examples.query)}`
  const json = { 'content-type': 'application/json' }
  const request = requestBody?.content['application/json']
  const example = request?.example ?? (request && exampleOf(request.schema, components.schemas))
  const good = body === null ? {} : { body: JSON.stringify(example), headers: json }
  const bad = (title: string, text: string, statuses: readonly number[], headers = json): Case[] =>
    body === null ? [] : [{ title, body: text, headers, statuses: [...statuses, ...notThere] }]
  const inPath = path.includes('{') ? [404] : []
  const notThere = problems.includes('not_found') ? [404] : inPath
  return [
    // An example names things that are not there, and what is there may be in its way.
    {
      title: 'as in the example',
      ...good,
      query: shownQuery,
      statuses: [status, ...(NAMES_A_RECORD.has(id) ? [404] : inPath), 409, 412, 428],
    },
    { title: 'with no token', ...good, headers: { ...json, authorization: '' }, statuses: [401] },
    {
      title: 'with no scope',
      ...good,
      headers: { ...json, authorization: `Bearer ${tokens.none}` },
      statuses: [403],
    },
    { title: 'with an unknown parameter', ...good, query: '?unknown=1', statuses: [400, ...notThere] },
    ...bad('with a list', '[]', [400]),
    ...bad('with an unknown member', '{"unknown": 1}', [400]),
    ...bad('with text', 'x', [415], { 'content-type': 'text/plain' }),
    // Prism answers nothing at all to what is no JSON.
    ...bad('with too much', JSON.stringify({ x: 'x'.repeat(bodyBytesMax) }), [413]),
    ...(method === 'GET' && files === null
      ? [
          {
            title: 'had already',
            query: shownQuery,
            headers: { 'if-none-match': '*' },
            statuses: [304, ...notThere],
          },
        ]
      : []),
    ...('page' in query.shape
      ? [{ title: 'far away', query: '?page=999999&limit=200', statuses: [200, ...notThere] }]
      : []),
    ...('cursor' in query.shape
      ? [{ title: 'behind nothing', query: '?cursor=WyJi', statuses: [400, ...notThere] }]
      : []),
    ...('page' in query.shape ? [{ title: 'nowhere', query: '?page=0', statuses: [400, ...notThere] }] : []),
  ]
}

/** The body of their example names something that is not there. */
const NAMES_A_RECORD: ReadonlySet<string> = new Set(['giveFeedback'])

function pathOf(path: string, { parameters = [] }: DocumentedOperation): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(parameters.find((each) => each.name === name)?.example)),
  )
}

/** A proxy that holds requests and answers against the document. Resolves to where it is. */
async function startPrism(t: Test, document: OpenApiDocument, upstream: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-prism-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'openapi.json')
  await writeFile(file, JSON.stringify(document))
  const port = await freePort()
  const child = spawn('prism', ['proxy', file, upstream, '--port', String(port), '--host', '127.0.0.1'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(child, 'close')
  t.teardown(async () => {
    child.kill()
    await gone
  })
  // It goes on talking, and stops at a pipe that nobody reads.
  await new Promise<void>((resolve, reject) => {
    child.once('close', () => reject(new Error('Prism has not started')))
    createInterface(child.stdout).on('line', (line) => line.includes('is listening on') && resolve())
  })
  return `http://127.0.0.1:${port}`
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}
