import { eventsIn } from './event-stream.ts'

export interface RelaySettings {
  /** Where a Gatehouse takes MCP over HTTP. */
  readonly endpoint: URL
  readonly key: string
  /** Resolves when it is on its way. */
  write(line: string): Promise<void>
  /** Told what the client cannot be told. */
  warn(text: string): void
}

/**
 * MCP over standard input and output on one side, over HTTP on the other. It reads of a message only what the other side
 * wants to have in headers: what a message means is the server's business.
 */
export class McpRelay {
  readonly #settings: RelaySettings
  /** By the id, as JSON. */
  readonly #open = new Map<string, Exchange>()
  readonly #under = new Set<Promise<void>>()
  /** What `initialize` has agreed on, for who speaks a protocol that has it. */
  #version: string | null = null
  #isEnding = false

  constructor(settings: RelaySettings) {
    this.#settings = settings
  }

  /** A line from the client. Its answers come when they come. */
  take(line: string): void {
    const work = this.#handle(line).finally(() => this.#under.delete(work))
    this.#under.add(work)
  }

  tooLong(bytesMax: number): Promise<void> {
    return this.#say(null, INVALID_REQUEST, `a message may have ${bytesMax} bytes`)
  }

  /** Nothing more comes: what has been asked is answered, and who only listens is let go. */
  async end(): Promise<void> {
    this.#isEnding = true
    for (const { isListening, stop } of this.#open.values()) if (isListening) stop.abort()
    const late = setTimeout(() => {
      for (const { stop } of this.#open.values()) stop.abort()
    }, ENDING_MS)
    while (this.#under.size > 0) await Promise.all(this.#under)
    clearTimeout(late)
  }

  async #handle(line: string): Promise<void> {
    const message = messageIn(line)
    if (message === null) return this.#say(null, PARSE_ERROR, 'this is no message of JSON-RPC')
    // An answer: the server has asked nothing.
    if (message.method === null) return
    if (message.cancels !== null && this.#cancel(message.cancels)) return
    if (message.id === null) return this.#exchange(message, line, new AbortController().signal)
    const key = JSON.stringify(message.id)
    if (this.#open.has(key)) return this.#say(message.id, INVALID_REQUEST, 'a request with this id is open')
    const stop = new AbortController()
    const isListening = message.method === 'subscriptions/listen'
    this.#open.set(key, { stop, isListening, isModern: message.version !== null })
    if (this.#isEnding && isListening) stop.abort()
    try {
      await this.#exchange(message, line, stop.signal)
    } finally {
      this.#open.delete(key)
    }
  }

  /** `false`: the server has to be told. Today it is told by leaving. */
  #cancel(id: Id): boolean {
    const found = this.#open.get(JSON.stringify(id))
    if (found === undefined || !found.isModern) return false
    found.stop.abort()
    return true
  }

  async #exchange(message: Message, line: string, signal: AbortSignal): Promise<void> {
    const { endpoint, key, warn } = this.#settings
    const headers = { ...HEADERS, ...this.#headersFor(message), authorization: `Bearer ${key}` }
    try {
      const response = await fetch(endpoint, {
        method: 'POST',
        headers,
        body: line,
        signal,
        redirect: 'error',
      })
      await this.#answer(message, response)
    } catch (error) {
      if (signal.aborted) return
      const why = `${endpoint.href} cannot be reached: ${reasonOf(error)}`
      if (message.id === null) return warn(why)
      await this.#say(message.id, SERVER_ERROR, why)
    }
  }

  #headersFor({ version, method, name }: Message): Record<string, string> {
    if (version === null) return this.#version === null ? {} : { 'mcp-protocol-version': this.#version }
    return {
      'mcp-protocol-version': version,
      'mcp-method': inHeader(method!),
      ...(name === null ? {} : { 'mcp-name': inHeader(name) }),
    }
  }

  async #answer(message: Message, response: Response): Promise<void> {
    const type = response.headers.get('content-type') ?? ''
    if (response.body === null || response.status === 202) return
    if (type.startsWith('text/event-stream')) {
      for await (const data of eventsIn(response.body, ANSWER_LENGTH_MAX)) await this.#pass(message, data)
      return
    }
    await this.#pass(message, await response.text(), response.status)
  }

  /** What the server says, in one line, to whoever asked. */
  async #pass({ id, method }: Message, text: string, status = 200): Promise<void> {
    const said = objectIn(text)
    if (said?.['jsonrpc'] !== '2.0') {
      if (id !== null) await this.#say(id, SERVER_ERROR, `the server has answered ${status}, and no message`)
      return
    }
    // What is refused before it is read has no id there.
    const isNameless = 'error' in said && (said['id'] ?? null) === null
    if (isNameless && id === null) return this.#settings.warn(`refused: ${JSON.stringify(said['error'])}`)
    const { protocolVersion } = (objectOf(said['result']) ?? {}) as { protocolVersion?: unknown }
    if (method === 'initialize' && typeof protocolVersion === 'string') this.#version = protocolVersion
    await this.#settings.write(`${JSON.stringify(isNameless ? { ...said, id } : said)}\n`)
  }

  async #say(id: Id, code: number, message: string): Promise<void> {
    await this.#settings.write(`${JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id })}\n`)
  }
}

type Id = string | number | null

interface Exchange {
  readonly stop: AbortController
  readonly isListening: boolean
  readonly isModern: boolean
}

/** What is looked at of what the client says. */
interface Message {
  readonly id: Id
  /** `null`: it is an answer. */
  readonly method: string | null
  /** Of the protocol, where each message says it: from 2026-07-28 on. */
  readonly version: string | null
  /** What is called or read. */
  readonly name: string | null
  /** The id of what is not wanted any more. */
  readonly cancels: Id
}

/** `null`: it is none. */
function messageIn(line: string): Message | null {
  const said = objectIn(line)
  if (said === null) return null
  const method = textOf(said['method'])
  const params = objectOf(said['params']) ?? {}
  const meta = objectOf(params['_meta']) ?? {}
  return {
    id: idOf(said['id']),
    method,
    version: textOf(meta['io.modelcontextprotocol/protocolVersion']),
    name: method === null ? null : textOf(params[NAMES.get(method) ?? '']),
    cancels: method === 'notifications/cancelled' ? idOf(params['requestId']) : null,
  }
}

function objectIn(text: string): Record<string, unknown> | null {
  try {
    return objectOf(JSON.parse(text))
  } catch {
    return null
  }
}

function objectOf(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function idOf(value: unknown): Id {
  return typeof value === 'string' || typeof value === 'number' ? value : null
}

/** As the protocol writes what is no plain text of a header. */
function inHeader(text: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?')
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}

/** fetch keeps what happened for its cause. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: Error }
  return cause?.message || message
}

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
/** Where each method has what `Mcp-Name` says. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])
const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600
const SERVER_ERROR = -32_000
/** Results are long; what is longer is none. */
const ANSWER_LENGTH_MAX = 64 * 1_048_576
/** Clients wait for no longer before they end what does not end. */
const ENDING_MS = 5_000
