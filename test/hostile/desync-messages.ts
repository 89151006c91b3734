import assert from 'node:assert/strict'

/** One HTTP/1 message, read by the letter of RFC 9112 and nothing beyond it. */
export interface Message {
  /** The first line. */
  readonly start: string
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly framing: Framing
  readonly body: string
  readonly trailers: readonly (readonly [name: string, value: string])[]
}

export type Framing = 'none' | 'length' | 'chunked' | 'until-close'

/** What says how long the body of a message is that names no framing. */
export type Unframed = (start: string) => 'none' | 'until-close' | 'bodyless'

/** A request without framing has no body. */
export const REQUESTS: Unframed = () => 'none'

/**
 * Cuts one direction of a connection into messages. It repairs nothing: what two readers could take in two ways is a
 * fault, so that whatever it gets through is the same to every reader.
 */
export class MessageReader {
  #text = ''
  #hasEnded = false
  readonly #unframed: Unframed

  constructor(unframed: Unframed) {
    this.#unframed = unframed
  }

  /** Bytes of an incomplete message. */
  get rest(): string {
    return this.#text
  }

  add(bytes: Buffer): void {
    this.#text += bytes.toString('latin1')
  }

  end(): void {
    this.#hasEnded = true
  }

  /** The next message that is all there. Throws on a byte that has no place in one. */
  next(): Message | null {
    const headEnd = this.#text.indexOf('\r\n\r\n')
    if (headEnd === -1) return null
    const [start = '', ...lines] = this.#text.slice(0, headEnd).split('\r\n')
    assert.match(start, START)
    const fields = lines.map(fieldOf)
    const kind = this.#unframed(start)
    const framing = kind === 'bodyless' ? 'none' : framingOf(fields, kind)
    const body = this.#body(framing, fields, headEnd + 4)
    if (body === null) return null
    this.#text = this.#text.slice(body.end)
    return { start, fields, framing, body: body.text, trailers: body.trailers }
  }

  #body(framing: Framing, fields: Message['fields'], at: number): Body | null {
    const text = this.#text
    switch (framing) {
      case 'none':
        return { text: '', trailers: [], end: at }
      case 'length': {
        const end = at + Number(valuesOf(fields, 'content-length')[0])
        return text.length < end ? null : { text: text.slice(at, end), trailers: [], end }
      }
      case 'until-close':
        return this.#hasEnded ? { text: text.slice(at), trailers: [], end: text.length } : null
      case 'chunked':
        return chunksOf(text, at)
    }
  }
}

export function valuesOf(fields: Message['fields'], name: string): string[] {
  return fields.filter(([found]) => found.toLowerCase() === name).map(([, value]) => value)
}

interface Body {
  readonly text: string
  readonly trailers: Message['trailers']
  readonly end: number
}

function framingOf(fields: Message['fields'], unframed: 'none' | 'until-close'): Framing {
  const lengths = valuesOf(fields, 'content-length')
  const codings = valuesOf(fields, 'transfer-encoding')
  assert.ok(lengths.length + codings.length <= 1, `framed twice: ${lengths} ${codings}`)
  for (const length of lengths) assert.match(length, /^[0-9]{1,15}$/)
  for (const coding of codings) assert.equal(coding, 'chunked')
  return lengths.length === 1 ? 'length' : codings.length === 1 ? 'chunked' : unframed
}

function chunksOf(text: string, start: number): Body | null {
  let body = ''
  for (let at = start; ; ) {
    const lineEnd = text.indexOf('\r\n', at)
    if (lineEnd === -1) return null
    const size = CHUNK_LINE.exec(text.slice(at, lineEnd))
    assert.ok(size !== null, `a chunk: ${text.slice(at, lineEnd)}`)
    const end = lineEnd + 2 + Number.parseInt(size[1]!, 16)
    if (end === lineEnd + 2) return trailersOf(text, end, body)
    if (text.length < end + 2) return null
    assert.equal(text.slice(end, end + 2), '\r\n')
    body += text.slice(lineEnd + 2, end)
    at = end + 2
  }
}

function trailersOf(text: string, at: number, body: string): Body | null {
  if (text.startsWith('\r\n', at)) return { text: body, trailers: [], end: at + 2 }
  const end = text.indexOf('\r\n\r\n', at)
  if (end === -1) return null
  return { text: body, trailers: text.slice(at, end).split('\r\n').map(fieldOf), end: end + 4 }
}

function fieldOf(line: string): readonly [string, string] {
  assert.match(line, FIELD)
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1).trim()]
}

/** A size, and extensions without quotes. */
const CHUNK_LINE = /^([0-9a-fA-F]{1,8})(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=[!#$%&'*+\-.^_`|~0-9A-Za-z]+)?)*$/
const FIELD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/
const START =
  /^(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+ [\x21-\x7e]+ HTTP\/1\.1|HTTP\/1\.1 [1-5][0-9]{2} [\t\x20-\x7e\x80-\xff]*)$/
