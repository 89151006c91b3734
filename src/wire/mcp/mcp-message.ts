import { folded, type Level, type Member, MEMBERS } from './mcp-members.ts'

/** What the body of a request says to an MCP server. */
export type McpReading = McpMessage | McpRefusal | NoMcpMessage

export interface McpMessage {
  readonly kind: 'message'
  /** Of the request, as JSON. `null`: a notification. */
  readonly id: string | null
  /** `null`: an answer to the server. */
  readonly method: string | null
  /** The tool that is called; `null`: none. */
  readonly tool: string | null
  /** The URI of the resource that is read or followed; `null`: none. */
  readonly resource: string | null
  /** What the header Mcp-Name must say; `null`: nothing. */
  readonly name: string | null
  /** The protocol version in the body; `null`: it has none. */
  readonly version: string | null
}

/** The message could be read in several ways, or cannot be read. */
export interface McpRefusal {
  readonly kind: 'refused'
  readonly status: 400 | 408 | 413 | 415 | 503
  /** Of JSON-RPC. */
  readonly code: number
  readonly why: string
  readonly id: string | null
}

/** The request has no body, or the body is not JSON, so an MCP server does not accept it as a message. */
export interface NoMcpMessage {
  readonly kind: 'none'
}

export const NO_MCP_MESSAGE: NoMcpMessage = { kind: 'none' }

/** Tells from the first bytes of a body whether it can be JSON. `null`: more bytes are needed. */
export function canBeJson(bytes: Uint8Array): boolean | null {
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) return true
    if (!SKIPPED.has(byte)) return false
  }
  return null
}

/**
 * Reads a whole body that can be JSON. Parsers differ in what they accept, so a message that another parser could read
 * in another way is refused: members that are repeated or written in other letters, a byte order mark, batches.
 */
export function readMcpMessage(bytes: Uint8Array): McpReading {
  return new MessageScan(bytes).read()
}

export function mcpRefusal(
  code: number,
  why: string,
  id: string | null = null,
  status: McpRefusal['status'] = 400,
): McpRefusal {
  return { kind: 'refused', status, code, why, id }
}

/** One pass over the bytes. It makes no values of the parts that no rule asks for. */
class MessageScan {
  readonly #bytes: Buffer
  #at = 0
  /** The last string, without its quotes. */
  #from = 0
  #to = 0
  #isPlain = true
  /** By level and name. */
  readonly #found = new Map<string, string | null>()
  #id: string | null = null
  #why: string | null = null

  constructor(bytes: Uint8Array) {
    this.#bytes = asBuffer(bytes)
  }

  read(): McpReading {
    this.#blanks()
    if (this.#bytes[this.#at] === OPEN_BRACKET)
      return mcpRefusal(INVALID_REQUEST, 'batches are not supported: send each message by itself')
    const isRead = this.#bytes[this.#at] === OPEN_BRACE && this.#object(1, 'message')
    if (isRead) this.#blanks()
    if (this.#why !== null) return mcpRefusal(INVALID_REQUEST, this.#why, this.#id)
    if (!isRead || this.#at !== this.#bytes.length)
      return mcpRefusal(PARSE_ERROR, 'the body is not valid JSON in UTF-8')
    return this.#message()
  }

  #message(): McpReading {
    const method = this.#found.get('message method') ?? null
    const nameIn = method === null ? undefined : NAMES_IN.get(method)
    const name = nameIn === undefined ? null : (this.#found.get(`params ${nameIn}`) ?? null)
    if (nameIn !== undefined && name === null)
      return mcpRefusal(INVALID_PARAMS, `params.${nameIn} is missing or not a text`, this.#id)
    return {
      kind: 'message',
      id: this.#id,
      method,
      tool: method === 'tools/call' ? name : null,
      resource: nameIn === 'uri' ? name : null,
      name: method !== null && MIRRORED.has(method) ? name : null,
      version: this.#found.get('meta version') ?? null,
    }
  }

  #value(depth: number): boolean {
    if (depth > DEPTH_MAX) return this.#refuse(`the message is nested deeper than ${DEPTH_MAX} levels`)
    switch (this.#bytes[this.#at]) {
      case OPEN_BRACE:
        return this.#object(depth, null)
      case OPEN_BRACKET:
        return this.#array(depth)
      case QUOTE:
        return this.#string()
      case LETTER_T:
        return this.#word('true')
      case LETTER_F:
        return this.#word('false')
      case LETTER_N:
        return this.#word('null')
      default:
        return this.#number()
    }
  }

  /** `level`: of the members that are read. `null`: none is. */
  #object(depth: number, level: Level | null): boolean {
    this.#at++
    this.#blanks()
    if (this.#takes(CLOSE_BRACE)) return true
    do {
      this.#blanks()
      if (this.#bytes[this.#at] !== QUOTE || !this.#string()) return false
      const member = level === null ? undefined : this.#memberNamed(level)
      if (this.#why !== null) return false
      this.#blanks()
      if (!this.#takes(COLON)) return false
      this.#blanks()
      if (member === undefined ? !this.#value(depth + 1) : !this.#member(depth + 1, level!, member))
        return false
      this.#blanks()
    } while (this.#takes(COMMA))
    return this.#takes(CLOSE_BRACE)
  }

  #array(depth: number): boolean {
    this.#at++
    this.#blanks()
    if (this.#takes(CLOSE_BRACKET)) return true
    do {
      this.#blanks()
      if (!this.#value(depth + 1)) return false
      this.#blanks()
    } while (this.#takes(COMMA))
    return this.#takes(CLOSE_BRACKET)
  }

  /** The member with the last string as its name. `undefined`: none that is read. */
  #memberNamed(level: Level): Member | undefined {
    const { byName, lengths } = MEMBERS[level]
    // In ASCII, names that differ only in case have the same length. Few names have that of a member.
    if (this.#isPlain && !lengths.has(this.#to - this.#from)) return undefined
    const key = this.#key()
    if (key === null) return undefined
    const member = byName.get(folded(key))
    // Some parsers take the last one, some the first one, and some ignore the case of names.
    if (member !== undefined && (member.written !== key || this.#found.has(member.place)))
      this.#refuse(`the member ${member.written} is repeated, or written in another way`)
    return member
  }

  /** The value of a member that is read. */
  #member(depth: number, level: Level, name: Member): boolean {
    const { place } = name
    this.#found.set(place, null)
    const first = this.#bytes[this.#at]
    if (name.as === 'params' || name.as === 'meta') return this.#inner(depth, name.as)
    const from = this.#at
    if (!this.#value(depth)) return false
    if (name.as === 'id') this.#id = this.#idIn(from, first)
    else if (first === QUOTE) this.#found.set(place, this.#text())
    else if (first !== LETTER_N || level === 'message') return this.#refuse(`${name.written} must be a text`)
    return this.#why === null
  }

  #inner(depth: number, level: 'params' | 'meta'): boolean {
    const first = this.#bytes[this.#at]
    if (first === OPEN_BRACE) return this.#object(depth, level)
    if (first === LETTER_N) return this.#word('null')
    return this.#refuse(`${level === 'meta' ? '_meta' : level} must be an object`)
  }

  #idIn(from: number, first: number | undefined): string | null {
    const isId = first === QUOTE || first === MINUS || isDigit(first)
    if (!isId || this.#at - from > ID_BYTES_MAX) return null
    return this.#bytes.toString('utf8', from, this.#at)
  }

  /** The last string. A text that other parsers could decode in another way is refused. */
  #text(): string {
    const text = this.#decoded()
    if (text === null || !text.isWellFormed() || hasControls(text)) {
      this.#refuse('a name in the message has characters that are not allowed in names')
      return ''
    }
    return text
  }

  #key(): string | null {
    const text = this.#decoded()
    if (text === null) this.#refuse('the body is not valid UTF-8')
    return text
  }

  #decoded(): string | null {
    if (this.#isPlain) return this.#bytes.toString('latin1', this.#from, this.#to)
    const bytes = this.#bytes.subarray(this.#from, this.#to)
    try {
      return JSON.parse(`"${new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)}"`)
    } catch {
      return null
    }
  }

  #string(): boolean {
    const bytes = this.#bytes
    let at = this.#at + 1
    this.#from = at
    this.#isPlain = true
    for (; at < bytes.length; at++) {
      const byte = bytes[at]!
      if (IS_USUAL[byte] === 1) continue
      if (byte === QUOTE) {
        this.#to = at
        this.#at = at + 1
        return true
      }
      if (byte < BLANK) return false
      if (byte >= FIRST_NON_ASCII) this.#isPlain = false
      if (byte !== BACKSLASH) continue
      this.#isPlain = false
      at++
      if (bytes[at] === LETTER_U) {
        for (let i = 1; i <= 4; i++) if (!isHex(bytes[at + i])) return false
        at += 4
      } else if (!ESCAPED.has(bytes[at] ?? 0)) return false
    }
    return false
  }

  #number(): boolean {
    this.#takes(MINUS)
    if (!this.#takes(ZERO) && !this.#digits()) return false
    if (this.#takes(POINT) && !this.#digits()) return false
    const byte = this.#bytes[this.#at]
    if (byte !== LETTER_E && byte !== LETTER_CAPITAL_E) return true
    this.#at++
    if (!this.#takes(PLUS)) this.#takes(MINUS)
    return this.#digits()
  }

  #digits(): boolean {
    const from = this.#at
    while (isDigit(this.#bytes[this.#at])) this.#at++
    return this.#at > from
  }

  #word(word: string): boolean {
    for (let i = 0; i < word.length; i++) if (this.#bytes[this.#at + i] !== word.charCodeAt(i)) return false
    this.#at += word.length
    return true
  }

  #takes(byte: number): boolean {
    if (this.#bytes[this.#at] !== byte) return false
    this.#at++
    return true
  }

  #blanks(): void {
    const bytes = this.#bytes
    for (let byte = bytes[this.#at]; byte === BLANK || byte === LF || byte === CR || byte === TAB; )
      byte = bytes[++this.#at]
  }

  #refuse(why: string): false {
    this.#why ??= why
    return false
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function hasControls(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return true
  }
  return false
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= 0x39
}

function isHex(byte: number | undefined): boolean {
  return isDigit(byte) || (byte !== undefined && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66)
}

/** The parameter that names what a method is for. */
const NAMES_IN: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['resources/subscribe', 'uri'],
  ['resources/unsubscribe', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
])
/** Methods whose name the header Mcp-Name mirrors. */
const MIRRORED: ReadonlySet<string> = new Set(
  [...NAMES_IN.keys()].filter((method) => !method.endsWith('subscribe')),
)
export const PARSE_ERROR = -32_700
export const INVALID_REQUEST = -32_600
const INVALID_PARAMS = -32_602
/** Arguments of tools are rarely deeper than ten levels. */
const DEPTH_MAX = 128
/** A longer id is not repeated in an error. */
const ID_BYTES_MAX = 256
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const BLANK = 0x20
const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const MINUS = 0x2d
const PLUS = 0x2b
const POINT = 0x2e
const ZERO = 0x30
const LETTER_T = 0x74
const LETTER_F = 0x66
const LETTER_N = 0x6e
const LETTER_U = 0x75
const LETTER_E = 0x65
const LETTER_CAPITAL_E = 0x45
const FIRST_NON_ASCII = 0x80
/** 1 for each byte of a string that stands for itself. */
const IS_USUAL = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= BLANK && byte < FIRST_NON_ASCII && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0,
)
/** What may follow a backslash, besides `u`. */
const ESCAPED: ReadonlySet<number> = new Set([...'"\\/bfnrt'].map((each) => each.charCodeAt(0)))
/** Bytes that some parser skips before JSON, or takes for the encoding: blanks, controls, byte order marks, UTF-16. */
const SKIPPED: ReadonlySet<number> = new Set([
  ...[0x00, TAB, LF, 0x0b, 0x0c, CR, 0x1c, 0x1d, 0x1e, 0x1f, BLANK],
  ...[0x85, 0xa0, 0xc2, 0xef, 0xbb, 0xbf, 0xfe, 0xff],
])
