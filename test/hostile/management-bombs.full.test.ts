import assert from 'node:assert/strict'
import { test } from 'tap'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { TestManagement } from '../manage/management.ts'
import { Caller } from './management-caller.ts'
import { ADMIN_KEY } from './management-estate.ts'
import { IS_WHOLE } from './whole.ts'

const MIB = 1_048_576
/** What a small body unpacks to, were it all unpacked. */
const UNPACKED = Buffer.alloc((IS_WHOLE ? 1_024 : 128) * MIB, ' ')
const PACKED = {
  gzip: gzipSync(UNPACKED, { level: 9 }),
  deflate: deflateSync(UNPACKED, { level: 9 }),
  br: brotliCompressSync(UNPACKED),
  zstd: zstdCompressSync(UNPACKED),
}
/** Those that read a body, by each of the doors. */
const PATHS = [
  '/v1/detect',
  '/v1/tasks/create',
  '/v1/execute',
  '/mcp',
  '/a2a',
  '/gnap/grant',
  '/oauth/token',
  '/oauth/register',
]

test('what unpacks to a thousand times as much is refused, and not unpacked', async (t) => {
  const manage = await TestManagement.start(t, { knows: true, adminKey: ADMIN_KEY })
  const caller = new Caller(t, manage.url, {
    authorization: `Bearer ${ADMIN_KEY}`,
    accept: '*/*',
    'a2a-version': '1.0',
  })
  const before = process.resourceUsage().maxRSS
  for (const path of PATHS)
    for (const [coding, bytes] of Object.entries(PACKED)) {
      const nested = gzipSync(bytes)
      for (const [named, body] of [
        [coding, bytes],
        [`${coding}, gzip`, nested],
      ] as const) {
        const { status, text } = await caller.ask('POST', path, body, { 'content-encoding': named })
        assert.ok(
          [400, 401, 404, 413, 415].includes(status) || text.includes('"error"'),
          `${path} ${named}: ${status} ${text.slice(0, 200)}`,
        )
      }
    }
  // In KiB: none of them was there as a whole.
  const grown = (process.resourceUsage().maxRSS - before) / 1_024
  assert.ok(grown < UNPACKED.length / MIB, `${grown} MiB more`)
  assert.deepEqual(manage.failures, [])
})

test('a packed body that is too large holds up no request behind it', async (t) => {
  const manage = await TestManagement.start(t, { knows: true, adminKey: ADMIN_KEY })
  const caller = new Caller(t, manage.url, { authorization: `Bearer ${ADMIN_KEY}`, accept: '*/*' }, 1)
  // All of it has been sent when the answer comes, and most of it has not been read.
  const body = Buffer.concat(new Array<Buffer>(8).fill(PACKED.gzip))
  const packed = await caller.ask('POST', '/v1/detect', body, { 'content-encoding': 'gzip' })
  assert.equal(packed.status, 413)
  const next = await caller.ask('POST', '/v1/detect', '{"user_agent":"curl/8.17.0"}')
  assert.equal(next.status, 200)
  assert.ok(next.ms < 4_000, `${next.ms} ms`)
  assert.deepEqual(manage.failures, [])
})

test('JSON that is deep, wide, doubled, endless or none is refused or read, and nothing else waits', async (t) => {
  const manage = await TestManagement.start(t, { knows: true, adminKey: ADMIN_KEY })
  const caller = new Caller(t, manage.url, {
    authorization: `Bearer ${ADMIN_KEY}`,
    accept: '*/*',
    'a2a-version': '1.0',
  })
  const many = 60_000
  const bodies: Readonly<Record<string, string>> = {
    'lists in lists': '['.repeat(many) + ']'.repeat(many),
    'lists without an end': '['.repeat(many),
    'objects in objects': `${'{"a":'.repeat(many)}1${'}'.repeat(many)}`,
    'many names': `{${Array.from({ length: many }, (_, at) => `"k${at}":0`)}}`,
    'one name over and over': `{${'"user_agent":"x",'.repeat(many / 2)}"user_agent":"y"}`,
    'numbers as names': `{${Array.from({ length: many }, (_, at) => `"${at * 65_536}":0`)}}`,
    'a number of many digits': `{"x":${'9'.repeat(1_000_000)}}`,
    'a small number of many digits': `{"x":0.${'0'.repeat(1_000_000)}1}`,
    'a large exponent': '{"x":1e999999999}',
    'a text of escapes': `{"user_agent":"${'\\u0000'.repeat(many)}"}`,
    'a text that does not end': `{"user_agent":"${'\\\\'.repeat(many)}`,
    blanks: ' '.repeat(1_000_000),
    'prototypes in prototypes': `${'{"__proto__":'.repeat(1_000)}1${'}'.repeat(1_000)}`,
    'a form of parts': '--x\r\nContent-Disposition: form-data; name="'.repeat(5_000),
  }
  for (const path of PATHS)
    for (const [what, body] of Object.entries(bodies)) {
      const { status, text, ms } = await caller.ask('POST', path, body)
      assert.ok(status < 500, `${path}, ${what}: ${status} ${text.slice(0, 200)}`)
      assert.ok(text.length < 100_000, `${path}, ${what}: ${text.length} characters`)
      assert.ok(ms < 10_000, `${path}, ${what}: ${ms} ms`)
    }
  const { status } = await caller.ask('POST', '/v1/detect', '{"user_agent":"curl/8.17.0"}')
  assert.equal(status, 200)
  assert.deepEqual(manage.failures, [])
})
