import type { Random } from '../../fuzz/mutate.ts'

/** One request of a client, when it gives up, and how the app answers. */
export interface ServerCase {
  readonly seed: number
  readonly request: RequestPlan
  readonly answer: AnswerPlan
  /** A content-length that is not that of the body. */
  readonly hasWrongLength: boolean
}

export interface RequestPlan {
  /** Names and values, pseudo-headers first. */
  readonly fields: readonly string[]
  /** Sizes of its pieces. `null`: the head ends the stream. */
  readonly body: readonly number[] | null
  readonly trailers: readonly string[]
  readonly reset: Reset | null
}

/** When the client resets its stream: at once, once the app has heard, at the answer's head, or in its body. */
export type Reset = 'at once' | 'asked' | 'answered' | 'within'

export interface AnswerPlan {
  readonly status: number
  readonly interim: readonly number[]
  readonly fields: readonly string[]
  readonly pieces: readonly number[]
  readonly framing: 'length' | 'chunked' | 'close'
  readonly trailers: readonly string[]
  /** Does not wait for the body of the request. */
  readonly isEarly: boolean
  /** Waits between its pieces. */
  readonly isSlow: boolean
  /** `broken`: after half of it. `silent`: it never ends, and the client has to leave. */
  readonly end: 'whole' | 'broken' | 'silent'
}

export function serverCase(random: Random, seed: number): ServerCase {
  const answer = answerPlan(random)
  const request = requestPlan(random, seed)
  const { reset } = request
  const hasWrongLength = isWrongLength(request)
  if (reset === null) return { seed, request, answer, hasWrongLength }
  // So long that neither server can have passed on all of it.
  const pieces = [70_000, ...answer.pieces.slice(1)]
  const status = 200
  return {
    seed,
    request,
    answer: { ...answer, status, pieces, isEarly: reset !== 'asked', end: 'silent' },
    hasWrongLength,
  }
}

function isWrongLength({ fields, body }: RequestPlan): boolean {
  const length = (body ?? []).reduce((sum, size) => sum + size, 0)
  return fields.some((name, i) => name === 'content-length' && fields[i + 1] !== `${length}`)
}

export function bytesOf(sizes: readonly number[]): Buffer[] {
  return sizes.map((size, index) => Buffer.alloc(size, `${index}:${size};`))
}

function requestPlan(random: Random, seed: number): RequestPlan {
  const method = random.below(25) === 0 ? random.of(ODD_METHODS) : random.of(METHODS)
  // For what is left unread behind an answer without a body, node:http2 gives no window back: the upload never ends.
  const sizesOf = method === 'HEAD' ? SHORT_SIZES : SIZES
  const sizes = Array.from({ length: random.below(4) }, () => random.below(random.of(sizesOf)))
  const body = method === 'POST' || method === 'PUT' || random.below(9) === 0 ? sizes : null
  const fields = [':method', method, ':scheme', 'https', ...authority(random), ':path', path(random, seed)]
  const family = random.of(FAMILIES)
  fields.push(...family)
  for (let left = random.below(4); left > 0; left--) fields.push(...random.of(FIELDS))
  if (random.below(12) === 0) fields.push(...random.of(ODD_FIELDS))
  if (body !== null && random.below(2) === 0) {
    const length = sizes.reduce((sum, size) => sum + size, 0)
    const shown = random.below(12) === 0 ? Math.max(0, length + random.below(5) - 2) : length
    fields.push('content-length', `${shown}`)
  }
  if (body !== null && random.below(8) === 0) fields.push('expect', '100-continue')
  const trailers = body !== null && random.below(4) === 0 ? random.of(TRAILERS) : []
  const reset = random.below(10) === 0 ? random.of(RESETS) : null
  return { fields, body, trailers, reset: method === 'HEAD' ? null : reset }
}

function authority(random: Random): readonly string[] {
  return random.below(30) === 0 ? random.of(ODD_AUTHORITIES) : [':authority', 'a.example.test']
}

/** The app knows the case by the number at the end. */
function path(random: Random, seed: number): string {
  return `${random.below(25) === 0 ? random.of(ODD_PATHS) : random.of(PATHS)}case=${seed}`
}

function answerPlan(random: Random): AnswerPlan {
  const status = random.of(STATUSES)
  const fields: string[] = []
  for (let left = random.below(5); left > 0; left--) fields.push(...random.of(ANSWER_FIELDS))
  const hasBody = status !== 204 && status !== 304
  const count = hasBody ? random.below(5) : 0
  const isEarly = random.below(10) === 0 && hasBody
  // With an early end of its connection, an app may lose its answer on the way.
  const framing = random.of(isEarly ? (['length', 'chunked'] as const) : FRAMINGS)
  return {
    status,
    interim: random.below(8) === 0 ? random.of([[103], [102], [103, 103], [100]]) : [],
    fields,
    pieces: Array.from({ length: count }, () => random.below(random.of(SIZES))),
    framing,
    trailers: framing === 'chunked' && random.below(3) === 0 ? random.of(TRAILERS) : [],
    isEarly,
    isSlow: random.below(12) === 0,
    end: hasBody && random.below(15) === 0 && !isEarly ? 'broken' : 'whole',
  }
}

const METHODS = [
  'GET',
  'GET',
  'GET',
  'GET',
  'GET',
  'GET',
  'HEAD',
  'POST',
  'POST',
  'PUT',
  'DELETE',
  'OPTIONS',
  'PATCH',
]
const ODD_METHODS = ['TRACE', 'PROPFIND', 'get', 'Post', 'QUERY', 'M-SEARCH']
const SIZES = [1, 20, 20, 700, 5000, 40_000, 400_000]
const SHORT_SIZES = SIZES.slice(0, -2)
const FRAMINGS = ['length', 'length', 'chunked', 'chunked', 'close'] as const
const STATUSES = [200, 200, 200, 200, 201, 204, 206, 301, 304, 400, 404, 500, 503, 599]
const RESETS: readonly Reset[] = ['at once', 'asked', 'answered', 'within']
const PATHS = ['/?', '/app?', '/app/x?', '/?q=1&', '/a/b/c?x=%20&', '/blocked?', '/moved?', '/;v=1?', '//a?']
const ODD_PATHS = [
  '*?',
  'a?',
  'https://b.example.test/?',
  '/#?',
  '/ ?',
  '/\xe4?',
  '/"<>\\^`{|}?',
  `/${'x'.repeat(9000)}?`,
]
const ODD_AUTHORITIES: readonly (readonly string[])[] = [
  ...[
    [':authority', ''],
    [':authority', 'b.example.test:443'],
    [':authority', 'a b'],
    [':authority', 'u@a'],
  ],
]
const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36'
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0'
const FAMILIES: readonly (readonly string[])[] = [
  [
    ...['sec-ch-ua', '"Chromium";v="141", "Not?A_Brand";v="8"', 'sec-ch-ua-mobile', '?0'],
    ...['sec-ch-ua-platform', '"Linux"', 'upgrade-insecure-requests', '1', 'user-agent', CHROME],
    ...['accept', 'text/html,application/xhtml+xml,*/*;q=0.8', 'sec-fetch-site', 'none'],
    ...['accept-encoding', 'gzip, deflate, br, zstd', 'accept-language', 'en-US,en;q=0.9'],
    ...['cookie', 'a=1', 'cookie', 'session=0123456789abcdef', 'cookie', 'c=', 'priority', 'u=0, i'],
  ],
  [
    ...['user-agent', FIREFOX, 'accept', '*/*', 'accept-language', 'de,en;q=0.5'],
    ...['accept-encoding', 'gzip, deflate, br', 'te', 'trailers', 'priority', 'u=4'],
  ],
  ['user-agent', 'curl/8.14.1', 'accept', '*/*'],
  ['user-agent', 'Go-http-client/2.0', 'accept-encoding', 'gzip'],
  ['user-agent', 'python-httpx/0.28.1', 'accept', '*/*', 'accept-encoding', 'gzip, deflate'],
  ['content-type', 'application/grpc', 'user-agent', 'grpc-node-js/1.14.0', 'te', 'trailers'],
  [],
]
const FIELDS: readonly (readonly string[])[] = [
  ['cookie', 'b=2; a=1'],
  ['cookie', 'x=y'],
  ['referer', 'https://a.example.test/'],
  ['x-empty', ''],
  ['x-latin', '\xe4\xff'],
  ['x-long', 'l'.repeat(9000)],
  ['authorization', 'Basic eDp5'],
  ['if-none-match', '"x"'],
  ['content-type', 'application/json'],
  ['x-forwarded-for', '192.0.2.7'],
  ['x-agent-name', 'gptbot'],
  ['x_agent_name', 'gptbot'],
  ['range', 'bytes=0-9'],
  ['x-same', '1', 'x-same', '2'],
  ['via', '1.0 x'],
]
const ODD_FIELDS: readonly (readonly string[])[] = [
  ['host', 'a.example.test'],
  ['host', 'b.example.test'],
  ['expect', 'other'],
  ['x-huge', 'h'.repeat(70_000)],
  ['content-length', '7'],
  ['content-length', 'x'],
  Array.from({ length: 420 }, (_, index) => (index % 2 === 0 ? `x-${index}` : 'v')),
  ['proxy-authorization', 'Basic eDp5'],
  ['trailer', 'x-sum'],
]
const TRAILERS: readonly (readonly string[])[] = [
  ['x-sum', '7'],
  ['x-a', '1', 'x-a', '2'],
  ['x-empty', ''],
]
const ANSWER_FIELDS: readonly (readonly string[])[] = [
  ['Content-Type', 'text/html; charset=utf-8'],
  ['Set-Cookie', 'a=1; Path=/', 'Set-Cookie', 'b=2'],
  ['Cache-Control', 'no-store'],
  ['ETag', '"abc"'],
  ['X-Latin', '\xe4\xff'],
  ['X-Empty', ''],
  ['X-Long', 'y'.repeat(20_000)],
  ['Location', '/elsewhere'],
  ['Vary', 'Accept-Encoding, Cookie'],
  ['Keep-Alive', 'timeout=5'],
]
