import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http2 from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import type { Exchange } from '../../../src/proxy/connection/exchange.ts'
import { skipped } from '../../e2e/programs.ts'
import { type Front, startFront } from '../front.ts'

/** A request that the server refuses itself, although its body is still coming. */
interface Refusal {
  readonly title: string
  readonly status: number
  readonly fields: Readonly<Record<string, string>>
  /** The client stops in the middle of its body. */
  readonly stalls?: boolean
}

const REFUSALS: readonly Refusal[] = [
  { title: 'a target that is too long', status: 414, fields: { ':path': `/${'a'.repeat(17_000)}` } },
  { title: 'an unknown expectation', status: 417, fields: { expect: 'a-miracle' } },
  {
    title: 'too many fields',
    status: 431,
    fields: Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`x-${index}`, 'a'])),
  },
  {
    title: 'fields that are too long',
    status: 431,
    fields: { 'x-a': 'a'.repeat(60_000), 'x-b': 'b'.repeat(6_000) },
  },
  { title: 'a malformed host', status: 400, fields: { ':authority': 'user@a' } },
  { title: 'a body longer than its content-length', status: 400, fields: { 'content-length': '10' } },
  { title: 'a body that stops', status: 408, fields: {}, stalls: true },
]
const BODY = Buffer.alloc(3_000_000, 'x')

for (const { title, status, fields, stalls = false } of REFUSALS) {
  test(`HTTP/2: Node's client gets ${status} for ${title}`, async (t) => {
    const { port } = await start(t)
    const session = http2.connect(`http://127.0.0.1:${port}`, { maxSendHeaderBlockLength: 100_000 })
    t.teardown(() => session.destroy())
    const headers = { ':method': 'POST', ':path': '/', ...fields }
    for (let round = 0; round < 3; round++) {
      const stream = session.request(headers, { strictFieldWhitespaceValidation: false } as object)
      const answered = answerOf(stream)
      if (stalls) stream.write('x')
      else stream.end(BODY)
      assert.equal(await answered, status)
    }
    const after = session.request({ ':path': '/' })
    assert.equal(await answerOf(after), 204, 'the connection goes on')
  })

  // curl sends no head as long as that.
  if ('x-b' in fields) continue
  test(`HTTP/2: curl gets ${status} for ${title}`, { skip: skipped('curl') }, async (t) => {
    const { port } = await start(t)
    const folder = mkdtempSync(join(tmpdir(), 'refused-'))
    t.teardown(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'body')
    writeFileSync(file, BODY)
    const { ':path': path = '/', ':authority': host, ...more } = fields
    const lines = Object.entries(host === undefined ? more : { ...more, host })
    const curl = spawn('curl', [
      ...[
        '-sS',
        '--no-progress-meter',
        '--http2-prior-knowledge',
        '-o',
        join(folder, 'answer'),
        '-w',
        '%{http_code}',
      ],
      ...['-X', 'POST', '-T', stalls ? '.' : file],
      ...lines.flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
      `http://127.0.0.1:${port}${path}`,
    ])
    t.teardown(() => curl.kill())
    curl.stdin.on('error', () => undefined)
    if (stalls) curl.stdin.write('x')
    const said = Promise.all([text(curl.stdout), text(curl.stderr)])
    const [code] = await once(curl, 'exit')
    assert.deepEqual([code, ...(await said)], [0, String(status), ''])
  })
}

/** The status, once the whole answer is there. A reset before that is an error. */
async function answerOf(stream: http2.ClientHttp2Stream): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let status = 0
  stream.on('error', reject).on('response', (fields) => (status = fields[':status']!))
  stream.on('end', () => resolve(status)).resume()
  return promise
}

async function start(t: Test): Promise<Front> {
  const front = await startFront({
    tls: null,
    options: { http2: 'own' },
    limits: { bodyIdleTimeoutMs: 300 },
    request: answer,
  })
  t.teardown(() => front.close())
  return front
}

/** Not before the body has ended. */
function answer(exchange: Exchange): void {
  exchange.body.resume().on('end', () => {
    exchange.answer(204, [], 0)
    exchange.end([])
  })
}
