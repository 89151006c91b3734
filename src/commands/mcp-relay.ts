import { eventsIn } from './event-stream.ts'

interface RelaySettings {
  /** The MCP endpoint of a Gatehouse, over HTTP. */
  readonly endpoint: URL
  readonly key: string
  /** Resolves when the line is written. */
  write(line: string): Promise<void>
  /** Reports problems that cannot be sent to the client. */
  warn(text: string): void
}

/**
 * Relays MCP between standard input and output and HTTP. It reads only the parts of a message that HTTP needs
 * in headers. The server interprets the rest.
 */
export class McpRelay {
  readonly #settings: RelaySettings
  /** Keyed by the request id, as JSON. */
  readonly #open = new Map<string, Exchange>()
  readonly #under = new Set<Promise<void>>()
  /** The version negotiated by `initialize`, for protocols that use it. */
  #version: string | null = null
  #isEnding = false

  constructor(settings: RelaySettings) {
    this.#settings = settings
  }

  /** Handles a line from the client. Answers are written when they arrive. */
  take(line: string): void {
    const work = this.#handle(line).finally(() => this.#under.delete(work))
    this.#under.add(work)
  }

  tooLong(bytesMax: number): Promise<void> {
    return this.#say(null, INVALID_REQUEST, `a message may have ${bytesMax} bytes`)
  }

  /** The input has ended: waits for pending answers and ends subscriptions. */
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
    if (message === null) return this.#say(null, PARSE_ERROR, 'this is not a JSON-RPC message')
    // A response, but the server sends no requests: ignore it.
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

  /**
   * `false`: the server must get the notification. Modern requests are cancelled by closing the connection.
   */
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

  /** Writes the server's message to the client, as one line. */
  async #pass({ id, method }: Message, text: string, status = 200): Promise<void> {
    const said = objectIn(text)
    if (said?.['jsonrpc'] !== '2.0') {
      if (id !== null) await this.#say(id, SERVER_ERROR, `the server has answered ${status}, and no message`)
      return
    }
    // An error for an unreadable request has no id.
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

/** The parts of a client message that the relay reads. */
interface Message {
  readonly id: Id
  /** `null`: the message is a response. */
  readonly method: string | null
  /** The protocol version in the message: since 2026-07-28. */
  readonly version: string | null
  /** The tool, prompt or resource. */
  readonly name: string | null
  /** The id of the request to cancel. */
  readonly cancels: Id
}

/** `null`: not a message. */
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

/** The protocol's encoding for values that are not plain header text. */
function inHeader(text: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?')
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}

/** fetch puts the real error into `cause`. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: Error }
  return cause?.message || message
}

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
/** The parameter that `Mcp-Name` repeats, by method. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])
const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600
const SERVER_ERROR = -32_000
/** Results can be long; a longer answer is treated as invalid. */
const ANSWER_LENGTH_MAX = 64 * 1_048_576
/** Clients wait about this long before they kill the process. */
const ENDING_MS = 5_000
