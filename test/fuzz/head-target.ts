import assert from 'node:assert/strict'
import { checkHttp1 } from '../../src/proxy/request-check.ts'
import { readCommonHead } from '../../src/wire/common-head.ts'

/**
 * Whatever the fast lane takes for a request, llhttp takes for the same one: the same method, target and fields, the same
 * end of its head and of its body, and the same wish for the connection. llhttp is strict, as in the robust lane.
 */
export function head(bytes: Buffer): void {
  const read = readCommonHead(bytes)
  if (read === null) return
  const { method, target, rawHeaders, end, keepsAlive } = read
  const own = bytes.subarray(0, end)
  const facts = checkHttp1(method, target, '11', rawHeaders, LIMITS)
  if (!facts.isGood) return // refused, by the robust lane
  assert.equal(facts.expectsContinue, false)
  assert.notEqual(facts.bodyLength, null)
  const length = facts.bodyLength!
  const wanted = { method, target, rawHeaders, keepsAlive, isUpgrade: false, bodyBytes: 0 }
  assert.deepEqual(heads(own.subarray(0, -1)), [], 'its head is whole before its end')
  assert.deepEqual(heads(own), [wanted])
  if (length > BODY_BYTES_MAX || !keepsAlive) return
  const followed = Buffer.concat([own, Buffer.alloc(length, 'x'), NEXT])
  assert.deepEqual(
    heads(followed).map(({ target, bodyBytes }) => [target, bodyBytes]),
    [
      [target, length],
      ['/next', 0],
    ],
  )
  // It reads no further than its end: what follows changes nothing.
  assert.deepEqual(readCommonHead(followed), read)
  for (const cut of [1, end >> 1, end - 1]) assert.equal(readCommonHead(bytes.subarray(0, cut)), null)
}

interface ReadHead {
  readonly method: string
  readonly target: string
  readonly rawHeaders: readonly string[]
  readonly keepsAlive: boolean
  readonly isUpgrade: boolean
  bodyBytes: number
}

/** What llhttp reads; it ends at a fault. */
function heads(bytes: Buffer): ReadHead[] {
  const read: ReadHead[] = []
  let fields: string[] = []
  let url = ''
  parser.initialize(HTTPParser.REQUEST, {}, 65_536, 0)
  const complete: HeadersComplete = (_major, _minor, some, method, target, _1, _2, isUpgrade, keepsAlive) => {
    const rawHeaders = [...fields, ...(some ?? [])]
    const name = methods[method]!
    read.push({ method: name, target: url + (target ?? ''), rawHeaders, keepsAlive, isUpgrade, bodyBytes: 0 })
    fields = []
    url = ''
    return 0
  }
  parser[HTTPParser.kOnHeaders] = (some: readonly string[], target: string) => {
    fields.push(...some)
    url += target
  }
  parser[HTTPParser.kOnHeadersComplete] = complete
  parser[HTTPParser.kOnBody] = (chunk: Buffer) => {
    read.at(-1)!.bodyBytes += chunk.length
  }
  parser[HTTPParser.kOnMessageComplete] = () => {}
  const result = parser.execute(bytes)
  return result instanceof Error ? [] : read
}

/** Node's own binding of llhttp, which has no public name. */
interface Parser {
  initialize(type: number, resource: object, maxHeaderSize: number, lenient: number): void
  execute(bytes: Buffer): number | Error
  [callback: number]: unknown
}

type HeadersComplete = (
  major: number,
  minor: number,
  fields: readonly string[] | undefined,
  method: number,
  target: string | undefined,
  status: undefined,
  words: undefined,
  isUpgrade: boolean,
  keepsAlive: boolean,
) => number

const { HTTPParser, methods } = (process.getBuiltinModule as (name: string) => unknown)('_http_common') as {
  readonly HTTPParser: { new (): Parser } & Readonly<
    Record<'REQUEST' | 'kOnHeaders' | 'kOnHeadersComplete' | 'kOnBody' | 'kOnMessageComplete', number>
  >
  readonly methods: readonly string[]
}
const parser = new HTTPParser()

const LIMITS = { requestLineBytesMax: 16_384, headerBytesMax: 65_536, headerCountMax: 200 }
const BODY_BYTES_MAX = 1000
const NEXT = Buffer.from('GET /next HTTP/1.1\r\nHost: a\r\n\r\n')
