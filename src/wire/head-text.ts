/** A request as a person has it in text: its head, what `curl -v` prints, or headers alone. */
export interface HeadText {
  readonly from: 'a request' | 'curl -v output' | 'headers'
  /** The request line; `null`: headers alone. */
  readonly line: RequestLine | null
  /** In the order and case of the text. */
  readonly headers: readonly HeaderLine[]
  /** Numbers of the lines before the body that are not headers. */
  readonly oddLines: readonly number[]
}

export interface RequestLine {
  readonly method: string
  readonly target: string
  readonly version: string
  readonly number: number
}

export interface HeaderLine {
  readonly name: string
  readonly value: string
  /** Counts from 1. */
  readonly line: number
}

/** Text without a request line is read as headers alone. */
export function readHeadText(text: string): HeadText {
  const lines = text.split(/\r\n|\n|\r/).map((line, index) => ({ number: index + 1, text: line.trimEnd() }))
  const sent = lines.flatMap(({ number, text }) =>
    /^>(?: |$)/.test(text) ? [{ number, text: text.slice(2) }] : [],
  )
  if (sent.length > 0) return headIn(sent, 'curl -v output')
  const given = lines.slice(lines.findIndex(({ text }) => text !== ''))
  return headIn(given, REQUEST_LINE.test(given[0]!.text) ? 'a request' : 'headers')
}

interface Line {
  readonly number: number
  readonly text: string
}

function headIn(lines: readonly Line[], from: HeadText['from']): HeadText {
  const line = requestLineIn(lines[0]!)
  const headers: HeaderLine[] = []
  const oddLines: number[] = []
  for (const { number, text } of line === null ? lines : lines.slice(1)) {
    // The body follows.
    if (text === '') break
    const [, name, value] = HEADER.exec(text) ?? []
    if (name === undefined || value === undefined) oddLines.push(number)
    else headers.push({ name, value: value.trim(), line: number })
  }
  return { from, line, headers, oddLines }
}

function requestLineIn({ number, text }: Line): RequestLine | null {
  const [, method, target, version] = REQUEST_LINE.exec(text) ?? []
  if (method === undefined || target === undefined || version === undefined) return null
  return { method, target, version, number }
}

/** Browsers list the pseudo-headers of HTTP/2 with a colon in front. */
const HEADER = /^(:?[\w!#$%&'*+.^`|~-]{1,100}):\s?(.*)$/
const REQUEST_LINE = /^([\w!#$%&'*+.^`|~-]{1,64}) (\S+) HTTP\/(\d(?:\.\d)?)$/
