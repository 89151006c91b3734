/** A message as llhttp reads it: strictly, as node:http does by default. */
export interface ReadMessage {
  /** Of a request. */
  readonly method: string
  readonly target: string
  /** Of a response; 0 of a request. */
  readonly status: number
  readonly version: string
  readonly rawHeaders: readonly string[]
  readonly keepsAlive: boolean
  readonly isUpgrade: boolean
  body: string
  readonly trailers: string[]
  isComplete: boolean
}

export interface ReadMessages {
  readonly messages: readonly ReadMessage[]
  /** It refuses what follows them. */
  readonly isFault: boolean
}

export function readRequests(bytes: Buffer): ReadMessages {
  return read(HTTPParser.REQUEST, bytes, () => false)
}

/** `hasNoBody`: of the response with that status, because of what was asked. The connection ends behind the bytes. */
export function readResponses(bytes: Buffer, hasNoBody: (status: number) => boolean): ReadMessages {
  return read(HTTPParser.RESPONSE, bytes, hasNoBody)
}

function read(type: number, bytes: Buffer, hasNoBody: (status: number) => boolean): ReadMessages {
  const messages: ReadMessage[] = []
  let fields: string[] = []
  let url = ''
  parser.initialize(type, {}, HEADER_BYTES_MAX, 0)
  const complete: HeadersComplete = (
    major,
    minor,
    some,
    method,
    target,
    status,
    _words,
    isUpgrade,
    keepsAlive,
  ) => {
    const rawHeaders = [...fields, ...(some ?? [])]
    messages.push({
      method: type === HTTPParser.REQUEST ? methods[method!]! : '',
      target: url + (target ?? ''),
      status: status ?? 0,
      version: `${major}.${minor}`,
      ...{ rawHeaders, keepsAlive, isUpgrade, body: '', trailers: [], isComplete: false },
    })
    fields = []
    url = ''
    return hasNoBody(status ?? 0) ? 1 : 0
  }
  parser[HTTPParser.kOnHeaders] = (some: readonly string[], target: string) => {
    const last = messages.at(-1)
    // Those of a message whose head is whole are its trailers.
    if (last !== undefined && !last.isComplete) return void last.trailers.push(...some)
    fields.push(...some)
    url += target
  }
  parser[HTTPParser.kOnHeadersComplete] = complete
  parser[HTTPParser.kOnBody] = (chunk: Buffer) => {
    messages.at(-1)!.body += chunk.toString('latin1')
  }
  parser[HTTPParser.kOnMessageComplete] = () => {
    messages.at(-1)!.isComplete = true
  }
  const isFault = parser.execute(bytes) instanceof Error
  // A body may go on until the connection ends.
  if (!isFault) parser.finish()
  return { messages, isFault }
}

/** Node's own binding of llhttp, which has no public name. */
interface Parser {
  initialize(type: number, resource: object, maxHeaderSize: number, lenient: number): void
  execute(bytes: Buffer): number | Error
  finish(): number | Error | undefined
  [callback: number]: unknown
}

type HeadersComplete = (
  major: number,
  minor: number,
  fields: readonly string[] | undefined,
  method: number | undefined,
  target: string | undefined,
  status: number | undefined,
  words: string | undefined,
  isUpgrade: boolean,
  keepsAlive: boolean,
) => number

const { HTTPParser, methods } = (process.getBuiltinModule as (name: string) => unknown)('_http_common') as {
  readonly HTTPParser: { new (): Parser } & Readonly<
    Record<
      'REQUEST' | 'RESPONSE' | 'kOnHeaders' | 'kOnHeadersComplete' | 'kOnBody' | 'kOnMessageComplete',
      number
    >
  >
  readonly methods: readonly string[]
}
const parser = new HTTPParser()
/** More than any that is written here. */
const HEADER_BYTES_MAX = 1_048_576
