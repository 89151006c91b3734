import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import SqliteConnection from 'better-sqlite3'
import fc from 'fast-check'
import {
  type OpenApiDocument,
  openApiDocument,
  problemsOf,
  responseIn,
} from '../../src/manage/api/openapi.ts'
import type { AnyOperation } from '../../src/manage/http/operation.ts'
import type { ApiVersion } from '../../src/manage/http/version.ts'
import { PROBLEMS, type ProblemCode } from '../../src/manage/http/refusal.ts'
import { TestManagement } from '../manage/management.ts'
import type { Owner } from '../store/databases.ts'
import { type FuzzedRequest, requestsFor } from './api-requests.ts'

export interface ApiFuzzing {
  readonly requests: number
  readonly seed: number
  readonly milliseconds: number
}

export interface ApiFuzzed {
  /** How often each operation was answered with each status. */
  readonly answers: ReadonlyMap<string, number>
  readonly requests: number
  /** With the smallest request that breaks a promise; `null`: none was found. */
  readonly failure: string | null
}

/** Asks a management plane of its own for whatever the document allows and does not, and holds it to its promises. */
export async function fuzzApi(
  t: Owner,
  version: ApiVersion,
  { requests, seed, milliseconds }: ApiFuzzing,
): Promise<ApiFuzzed> {
  // Keys may be revoked on the way; the one that the operator has set cannot.
  const admin = 'the administrator of the fuzzed plane'
  const manage = await TestManagement.start(t, {
    knows: true,
    adminKey: admin,
    authFailuresPerMinute: 100_000,
  })
  const caller = new Caller(manage, version, {
    admin,
    read: await manage.key({ scopes: ['read', 'detect'] }),
    write: await manage.key({ scopes: ['write', 'mcp'] }),
    wrong: 'ghk_nobody',
  })
  t.teardown(() => caller.close())
  const property = fc.asyncProperty(requestsFor(caller.document, version, caller), (asked) =>
    caller.ask(asked),
  )
  const details = await fc.check(property, {
    ...{ numRuns: requests, seed, interruptAfterTimeLimit: milliseconds, markInterruptAsFailure: false },
  })
  const failure = details.failed
    ? `seed ${details.seed}: ${JSON.stringify(details.counterexample)}\n${String(details.errorInstance)}`
    : null
  return { answers: caller.answers, requests: details.numRuns, failure }
}

class Caller {
  readonly document: OpenApiDocument
  /** Of what there is: they make the next requests find something. */
  readonly ids: string[] = []
  /** What answers had to go on with: some are of the list that is asked for. */
  readonly cursors: string[] = []
  readonly answers = new Map<string, number>()
  readonly #manage: TestManagement
  readonly #version: ApiVersion
  readonly #tokens: Readonly<Record<string, string>>
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  readonly #database: SqliteConnection.Database

  constructor(manage: TestManagement, version: ApiVersion, tokens: Readonly<Record<string, string>>) {
    this.#manage = manage
    this.#version = version
    this.#tokens = tokens
    this.document = openApiDocument(version, manage.url)
    this.#database = new SqliteConnection(manage.storeUrl.slice('sqlite:'.length), { readonly: true })
  }

  /** What goes on by itself, like tasks, may change something at the same time, and not again and again. */
  async ask(asked: FuzzedRequest): Promise<void> {
    for (let times = 1; ; times++) {
      const changed = await this.#changedBy(asked)
      if (changed === null) return
      assert.ok(times < TIMES, changed)
    }
  }

  /** In words, if what was refused has changed something all the same. */
  async #changedBy(asked: FuzzedRequest): Promise<string | null> {
    const operation = this.#version.operations.find(({ id }) => id === asked.operationId)!
    const before = this.#digest()
    const { status, headers, body } = await this.#answer(asked)
    const name = `${operation.id} ${status}`
    this.answers.set(name, (this.answers.get(name) ?? 0) + 1)
    assert.deepEqual(this.#manage.failures, [])
    assert.ok(headers['x-request-id'] !== undefined, 'no X-Request-Id')
    assert.equal(headers['x-api-stability'], this.#version.isBeta ? 'beta' : undefined)
    if (status !== 401 && status !== 414) assert.ok(headers['ratelimit'] !== undefined, 'no RateLimit')
    if (status < 400) {
      if (headers['content-type'] === EVENTS) return null
      this.#checkAnswer(operation, asked, status, headers, body)
      return null
    }
    this.#checkProblem(operation, asked, status, headers, body)
    const after = this.#digest()
    const tables = Object.keys(after).filter((table) => after[table] !== before[table])
    return tables.length === 0 ? null : `${status}, and all the same it has changed ${tables.join(', ')}`
  }

  close(): void {
    this.#agent.destroy()
    this.#database.close()
  }

  #checkAnswer(
    operation: AnyOperation,
    asked: FuzzedRequest,
    status: number,
    headers: IncomingHttpHeaders,
    body: string,
  ): void {
    const documented = responseIn(this.document, this.#documented(operation), status)
    assert.ok(documented !== undefined, `${status} is not in the document`)
    const type = headers['content-type']?.split(';')[0] ?? ''
    if (status === 304 || (operation.answer === null && documented.content === undefined))
      return assert.equal(body, '')
    assert.ok(documented.content?.[type] !== undefined, `${type} is not in the document`)
    if (operation.answer === null) return
    const answer: unknown = JSON.parse(body)
    const { error } = operation.answer.safeParse(answer)
    assert.equal(error, undefined, `${body}: ${error?.message}`)
    if (asked.method === 'POST' || this.ids.length < IDS_MAX)
      for (const [, id] of body.matchAll(/"(?:\w+_)?id":"([^"]{1,80})"/g))
        this.#remember(this.ids, encodeURIComponent(id!))
    for (const [, cursor] of body.matchAll(/"next_cursor":"([^"]+)"/g)) this.#remember(this.cursors, cursor!)
  }

  #checkProblem(
    operation: AnyOperation,
    { target, method }: FuzzedRequest,
    status: number,
    headers: IncomingHttpHeaders,
    body: string,
  ): void {
    assert.equal(headers['content-type'], 'application/problem+json')
    const problem = JSON.parse(body) as { code: ProblemCode; status: number; request_id: string }
    assert.equal(problem.status, status)
    assert.equal(PROBLEMS[problem.code].status, status)
    assert.equal(problem.request_id, headers['x-request-id'])
    assert.ok(status < 500, body)
    // What a damaged path leads to is another thing than the operation.
    const isElsewhere = /%2f|\.\./i.test(target) || target.split('?')[0]!.endsWith('/')
    if (!isElsewhere)
      assert.ok(
        problemsOf(operation).has(problem.code),
        `${method} ${target}: ${body} is not in the document`,
      )
  }

  #documented({ path, method }: AnyOperation) {
    return this.document.paths[path]![method.toLowerCase()]!
  }

  #remember(known: string[], one: string): void {
    if (known.includes(one)) return
    if (known.length >= IDS_MAX) known.shift()
    known.push(one)
  }

  async #answer({ method, target, headers, body, token }: FuzzedRequest) {
    const authorization = token === 'none' ? {} : { authorization: `Bearer ${this.#tokens[token]}` }
    const length = body === null ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const sent = request(`${this.#manage.url}/`, {
      ...{ method, path: target, agent: this.#agent },
      headers: { accept: 'application/json', ...headers, ...authorization, ...length },
    })
    const answered = Promise.withResolvers<{ status: number; headers: IncomingHttpHeaders; body: string }>()
    sent.on('error', answered.reject)
    sent.on('response', (response) => {
      const { statusCode: status, headers } = response
      if (headers['content-type'] === EVENTS) {
        response.destroy() // it would not end
        return answered.resolve({ status: status!, headers, body: '' })
      }
      const opened = headers['content-encoding'] === 'gzip' ? response.pipe(createGunzip()) : response
      text(opened).then(
        (given) => answered.resolve({ status: status!, headers, body: given }),
        answered.reject,
      )
    })
    sent.end(body ?? undefined)
    return answered.promise
  }

  /** Of every table but those that are about the requests themselves. */
  #digest(): Readonly<Record<string, string>> {
    const version = this.#database.pragma('data_version', { simple: true })
    if (this.#last !== null && this.#last.version === version) return this.#last.digest
    const tables = this.#database
      .prepare("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
      .pluck()
      .all() as string[]
    const digest = Object.fromEntries(
      tables.filter((name) => !OF_REQUESTS.has(name)).map((name) => [name, this.#digestOf(name)]),
    )
    this.#last = { version, digest }
    return digest
  }

  #last: { readonly version: unknown; readonly digest: Readonly<Record<string, string>> } | null = null

  #digestOf(table: string): string {
    const hash = createHash('sha256')
    for (const row of this.#database.prepare(`select * from "${table}"`).iterate() as Iterable<
      Record<string, unknown>
    >)
      hash.update(JSON.stringify({ ...row, last_used_at_ms: null }))
    return hash.digest('base64')
  }
}

const EVENTS = 'text/event-stream'
const IDS_MAX = 200
const TIMES = 4
/** Written whatever the answer is. */
const OF_REQUESTS = new Set(['rate_limits', 'idempotency', 'audit'])
