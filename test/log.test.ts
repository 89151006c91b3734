import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { Fault } from '../src/shared/fault.ts'
import { createLogTo, type Log, type LogLevel } from '../src/shared/log.ts'

test('a line is JSON with time, level, process and message', async () => {
  const { log, lines } = memoryLog()
  log.with({ worker: 2 }).warn('the policy was not loaded', { file: 'policy.yaml', problems: ['a', 'b'] })
  const { time, ...line } = lines()[0]!
  assert.ok(Math.abs(Date.parse(String(time)) - Date.now()) < 10_000)
  assert.deepEqual(line, {
    level: 'warn',
    pid: process.pid,
    worker: 2,
    file: 'policy.yaml',
    problems: ['a', 'b'],
    message: 'the policy was not loaded',
  })
})

test('what is below the level is not written', async () => {
  const { log, lines } = memoryLog('warn')
  log.debug('a')
  log.info('b')
  log.warn('c')
  log.error('d')
  assert.deepEqual(
    lines().map(({ message }) => message),
    ['c', 'd'],
  )
})

test('of many lines with one message some are written, and the next says how many were not', async () => {
  const text: string[] = []
  const log = createLogTo('info', { write: (line) => void text.push(line) }, undefined, 3)
  const another = log.with({ worker: 2 })
  const startMs = performance.now()
  // In one second, and not over its end.
  while (Math.floor(performance.now() / 1_000) === Math.floor(startMs / 1_000)) await wait(1)
  for (let i = 0; i < 50; i++) (i % 2 === 0 ? log : another).info('again', { i })
  log.info('something else')
  log.debug('again')
  const written = () => text.map((line) => JSON.parse(line))
  assert.deepEqual(
    written().map(({ message, i, left_out }) => [message, i, left_out]),
    [...[0, 1, 2].map((i) => ['again', i, undefined]), ['something else', undefined, undefined]],
  )
  const second = Math.floor(performance.now() / 1_000)
  while (Math.floor(performance.now() / 1_000) === second) await wait(1)
  log.info('again', { i: 50 })
  log.info('again', { i: 51 })
  assert.deepEqual(
    written()
      .slice(4)
      .map(({ i, left_out }) => [i, left_out]),
    [
      [50, 47],
      [51, undefined],
    ],
  )
})

test('of an error only what we chose: never the bytes that a parser failed at', async () => {
  const { log, text } = memoryLog()
  const error = Object.assign(new Error('Parse Error: Invalid header'), {
    code: 'HPE_INVALID_HEADER_TOKEN',
    rawPacket: Buffer.from('Cookie: session=sesame'),
    request: { headers: { authorization: 'Bearer sesame' } },
    cause: { token: 'sesame' },
  })
  log.error('a request could not be read', { error })
  assert.ok(text().includes('HPE_INVALID_HEADER_TOKEN'))
  assert.ok(!text().includes('sesame') && !text().includes('115,101,115'))
})

test('a stack is said of our own bugs only', async () => {
  const { log, lines } = memoryLog()
  log.error('x', { error: new TypeError('undefined is not a function') })
  log.error('x', { error: new Fault('CERTIFICATE_INVALID', 'x.pem does not exist') })
  const [bug, fault] = lines().map(({ error }) => error as Record<string, unknown>)
  assert.match(String(bug!['stack']), /log\.test\.ts/)
  assert.deepEqual(fault, { name: 'Fault', code: 'CERTIFICATE_INVALID', message: 'x.pem does not exist' })
})

test('fields that are named like secrets are redacted, should one ever get in', async () => {
  const { log, text } = memoryLog()
  for (const name of [
    'headers',
    'cookie',
    'authorization',
    'token',
    'passphrase',
    'secret',
    'key',
    'adminKey',
  ]) {
    log.info('x', { [name]: 'sesame' })
    log.with({ [name]: 'sesame' }).info('x')
  }
  assert.ok(!text().includes('sesame'))
  assert.equal(text().split('<redacted>').length - 1, 16)
})

test('what was logged is out after a flush, also when the process ends at once', async () => {
  const { stderr, status } = await run(`log.info('last words'); log.flush(); process.exit(3)`)
  assert.equal(status, 3)
  assert.equal(JSON.parse(stderr).message, 'last words')
})

test('a reader that is gone, or does not read, stops nothing', async () => {
  const busy = `for (let i = 0; i < 50000; i++) log.info('x'.repeat(100)); await new Promise((go) => setTimeout(go, 50)); log.flush(); process.exit(7)`
  const deaf = start(busy)
  deaf.stderr!.destroy()
  assert.deepEqual(await once(deaf, 'exit'), [7, null])
})

test('last lines without a reader do not delay the end', async () => {
  const last = `await once(process.stdin, 'end'); log.info('last words'); log.flush(); process.exit(7)`
  const gone = start(`const { once } = await import('node:events'); process.stdin.resume(); ${last}`, 'pipe')
  gone.stderr!.destroy()
  gone.stdin!.end()
  assert.deepEqual(await once(gone, 'exit'), [7, null])
  const full = `for (let i = 0; i < 5000; i++) log.info('x'.repeat(100)); log.flush(); process.exit(7)`
  const deaf = start(full)
  assert.deepEqual(await once(deaf, 'exit'), [7, null])
})

function memoryLog(level: LogLevel = 'debug') {
  const written: string[] = []
  const log: Log = createLogTo(level, { write: (line) => void written.push(line) })
  const text = () => written.join('')
  const lines = (): Record<string, unknown>[] =>
    text()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  return { log, text, lines }
}

function start(script: string, stdin: 'ignore' | 'pipe' = 'ignore') {
  const module = new URL('../src/shared/log.ts', import.meta.url).href
  const source = `const { createLog } = await import('${module}'); const log = createLog({ level: 'info', perSecond: null, format: 'json' }); ${script}`
  const { NODE_OPTIONS: _, ...env } = process.env
  return spawn(process.execPath, ['--input-type=module', '-e', source], {
    env,
    stdio: [stdin, 'ignore', 'pipe'],
  })
}

async function run(script: string): Promise<{ stderr: string; status: number | null }> {
  const child = start(script)
  let stderr = ''
  child.stderr!.on('data', (chunk) => {
    stderr += chunk
  })
  const [status] = await once(child, 'close')
  return { stderr, status }
}
