import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { startGatehouse } from '../e2e/gatehouse.ts'
import { plainEnvironment, run, skipped, temporaryFolder } from '../e2e/programs.ts'
import { LARGE, MANY, startClientsApp } from './app.ts'
import { pattern, sha256 } from './ask.ts'

test('nghttp: many requests, a large body each way and trailers', {
  skip: skipped('nghttp'),
}, async (t) => {
  const { ask, app, file } = await start(t, 'nghttp', '--no-verify-peer')

  const paths = Array.from({ length: MANY }, (_, i) => `/many?${i}`)
  const many = await ask(paths, '--null-out', '--verbose')
  assert.equal(many.match(/recv \(stream_id=\d+\).* :status: 200/g)?.length, MANY)

  assert.equal(sha256(Buffer.from(await ask(['/large']), 'latin1')), sha256(app.pattern))

  app.asked.length = 0
  const argv = ['--data', file(LARGE), '--trailer', 'x-sum: 12', '--no-content-length']
  assert.equal(await ask(['/upload'], ...argv), 'taken')
  const [{ body, rawTrailers }] = app.asked as [(typeof app.asked)[number]]
  assert.equal(body, sha256(app.pattern))
  assert.deepEqual(rawTrailers, ['x-sum', '12'])

  const trailers = await ask(['/trailers'], '--null-out', '--verbose', '-H', 'te: trailers')
  assert.match(trailers, /recv \(stream_id=\d+\).* x-sum: 7/)
})

test('h2load: every request of every connection succeeds', { skip: skipped('h2load') }, async (t) => {
  const { ask, app, file } = await start(t, 'h2load')
  const succeeded =
    /requests: 1000 total, 1000 started, 1000 done, 1000 succeeded, 0 failed, 0 errored, 0 timeout/
  const load = ['-n', '1000', '-c', '4', '-m', '50']
  assert.match(await ask(['/fields'], ...load), succeeded)
  // Its windows are as small as they can be by default: 64 KiB.
  assert.match(await ask(['/gzip'], ...load, '-w', '16', '-W', '16'), succeeded)
  app.asked.length = 0
  assert.match(await ask(['/upload'], ...load, '-d', file(20_000)), succeeded)
  assert.deepEqual(new Set(app.asked.map(({ body }) => body)), new Set([sha256(pattern(20_000))]))
})

async function start(t: Test, program: string, ...always: readonly string[]) {
  const app = await startClientsApp(t)
  const gate = await startGatehouse(t, { upstream: app.url, settings: ['http2: own'] })
  const folder = temporaryFolder(t)
  const file = (length: number): string => {
    const path = join(folder, `body-${length}`)
    writeFileSync(path, pattern(length))
    return path
  }
  const ask = async (paths: readonly string[], ...argv: readonly string[]): Promise<string> => {
    const urls = paths.map((path) => gate.url + path)
    const { status, stdout, stderr } = await run(program, [...always, ...argv, ...urls], {
      env: plainEnvironment(folder),
    })
    assert.deepEqual([status, stderr], [0, ''])
    return stdout
  }
  return { app, file, ask }
}
