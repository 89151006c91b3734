import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client'
import { Fault } from '../../../shared/fault.ts'
import type { StoreLogin } from '../../engine/store-login.ts'

export type ClickHouseValue = string | number | readonly string[] | readonly number[]

/** A statement for ClickHouse. Values are parameters: `{name:Type}` in the text. */
export interface Statement {
  readonly text: string
  readonly values?: Readonly<Record<string, ClickHouseValue>>
}

/** A connection to ClickHouse, over HTTP. Every failure is a Fault whose code starts with `STORE_`. */
export class ClickHouse {
  readonly place: ClickHousePlace
  readonly #login: StoreLogin | null
  readonly #stop: (() => void) | undefined
  #client: Promise<ClickHouseClient> | null = null

  constructor(url: string, login: StoreLogin | null) {
    this.place = clickHousePlace(url)
    this.#login = login
    this.#stop = login?.onRenewed(() => void this.#leave())
  }

  /** The rows, each a list of the values of its columns. */
  async rows<Row extends readonly unknown[]>({ text, values = {} }: Statement): Promise<readonly Row[]> {
    return this.#asked(async (client) => {
      const answer = await client.query({
        query: text,
        format: 'JSONCompactEachRow',
        query_params: values,
        clickhouse_settings: READING,
      })
      return answer.json<Row>() as Promise<readonly Row[]>
    })
  }

  /** Runs a statement that answers with nothing. */
  async run({ text, values = {} }: Statement): Promise<void> {
    await this.#asked(async (client) => {
      await client.command({ query: text, query_params: values, clickhouse_settings: CHANGING })
    })
  }

  /** Inserts rows, which are compressed lines of JSON. A second insert with the same `token` adds nothing. */
  async insert(into: string, lines: readonly Buffer[], token: string): Promise<void> {
    await this.#asked(async (client) => {
      const { stream } = await client.exec({
        query: `INSERT INTO ${into} FORMAT JSONCompactEachRow`,
        values: Readable.from(expanded(lines), { objectMode: false }),
        clickhouse_settings: { ...INSERTING, insert_deduplication_token: token },
      })
      for await (const _ of stream);
    })
  }

  async close(): Promise<void> {
    this.#stop?.()
    await this.#leave()
  }

  async #asked<Result>(ask: (client: ClickHouseClient) => Promise<Result>): Promise<Result> {
    try {
      this.#client ??= this.#connected()
      return await ask(await this.#client)
    } catch (error) {
      throw asFault(error, this.place)
    }
  }

  /** Loaded when it is needed: most installations have no ClickHouse. */
  async #connected(): Promise<ClickHouseClient> {
    const { createClient, ClickHouseLogLevel } = await import('@clickhouse/client')
    const { url, user, database } = this.place
    return createClient({
      url,
      username: user,
      password: this.#login?.password ?? '',
      database,
      application: 'gatehouse',
      request_timeout: TIMEOUT_MS,
      compression: { request: { codec: 'zstd' }, response: true },
      log: { level: ClickHouseLogLevel.OFF },
      use_multipart_params_auto: true,
    })
  }

  /** Statements that are under way end on the connection that they have. */
  async #leave(): Promise<void> {
    const client = this.#client
    this.#client = null
    await client?.then((left) => left.close()).catch(() => undefined)
  }
}

export interface ClickHousePlace {
  /** With `http://` or `https://`, and nothing behind the port. */
  readonly url: string
  readonly user: string
  readonly database: string
  /** The name of a cluster, whose nodes share the rows; `null`: one server. */
  readonly cluster: string | null
}

/** Of `clickhouse://USER@HOST:PORT/DATABASE?cluster=NAME`, or `clickhouses://` for TLS. Throws a Fault. */
export function clickHousePlace(text: string): ClickHousePlace {
  const [, tls, rest = ''] = /^clickhouse(s?):\/\/(.+)$/.exec(text) ?? []
  const url = URL.parse(`http${tls ?? ''}://${rest}`)
  const database = decodeURIComponent(url?.pathname.slice(1) ?? '')
  const others = [...(url?.searchParams.keys() ?? [])].filter((name) => name !== 'cluster')
  const cluster = url?.searchParams.get('cluster') ?? null
  if (url === null || tls === undefined || !NAME.test(database) || url.hash !== '' || others.length > 0)
    throw new Fault('STORE_URL_INVALID', `a traffic store is ${CLICKHOUSE_FORM}`)
  if (cluster !== null && !NAME.test(cluster))
    throw new Fault('STORE_URL_INVALID', 'the name of a cluster is letters, digits, "_" and "-"')
  if (url.port === '') url.port = tls === 's' ? '8443' : '8123'
  return {
    url: `http${tls}://${url.hostname}:${url.port}`,
    user: decodeURIComponent(url.username) || 'default',
    database,
    cluster,
  }
}

export const CLICKHOUSE_FORM = 'clickhouse://USER@HOST:PORT/DATABASE, or clickhouses:// for TLS'

function asFault(error: unknown, { url }: ClickHousePlace): Fault {
  if (error instanceof Fault) return error
  const { code, message } = error as { readonly code?: unknown; readonly message: string }
  const found = CODES.get(String(code)) ?? (['STORE_UNAVAILABLE', 'cannot be reached or fails'] as const)
  const why = [code, message.slice(0, MESSAGE_MAX)].filter((part) => part !== undefined && part !== '')
  return new Fault(found[0], `ClickHouse at ${url} ${found[1]} (${why.join(': ')})`, { cause: error })
}

async function* expanded(parts: readonly Buffer[]): AsyncGenerator<Buffer> {
  for (const part of parts) yield decompressed(part)
}

const decompressed = promisify(zstdDecompress)
/** Of ClickHouse. */
const CODES: ReadonlyMap<string, readonly [code: string, what: string]> = new Map([
  ['81', ['STORE_UNAVAILABLE', 'has no such database: make it with CREATE DATABASE']],
  ['159', ['STORE_UNAVAILABLE', 'took too long']],
  ['164', ['STORE_UNAVAILABLE', 'lets this user only read']],
  ['241', ['STORE_UNAVAILABLE', 'has too little memory']],
  ['243', ['STORE_FULL', 'has no room left']],
  ['252', ['STORE_LOCKED', 'has more parts to merge than it can']],
  ['497', ['STORE_UNAVAILABLE', 'does not grant this user what it needs']],
  ['516', ['STORE_UNAVAILABLE', 'does not let us in: compare traffic.password with what it knows']],
])
const NAME = /^[\w-]{1,64}$/
const MESSAGE_MAX = 300
const TIMEOUT_MS = 30_000
const READING: ClickHouseSettings = {
  // Numbers beyond 2^53 do not occur.
  output_format_json_quote_64bit_integers: 0,
  max_execution_time: 20,
}
const CHANGING: ClickHouseSettings = { wait_end_of_query: 1 }
const INSERTING: ClickHouseSettings = { wait_end_of_query: 1, async_insert: 0, insert_deduplicate: 1 }
