import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'

/**
 * `npm run bench:tasks`: from asking for a task of 10,000 detections to its last result being there to read, on SQLite,
 * with the slowest answer to a probe that is asked meanwhile. The figures are the best and the median of some rounds.
 */
const ROUNDS = 7
const ITEMS = 10_000
const child = spawn(process.execPath, [new URL('server.ts', import.meta.url).pathname, 'manage'], {
  stdio: ['pipe', 'pipe', 'inherit'],
})
const { port, key } = JSON.parse(await firstLine(child)) as { port: number; key: string }
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
const items = Array.from({ length: ITEMS }, (_, i) => ({
  user_agent: `tool-${i % 500}/1.${i % 7} (+https://a.test/)`,
  ja4: 't13d1516h2_8daaf6152771_e5627efa2ab1',
  headers: { accept: '*/*', 'accept-encoding': 'gzip', 'x-number': String(i) },
}))
const body = JSON.stringify({ type: 'detect', items })
const times: number[] = []
const slowest: number[] = []
for (let round = 0; round < ROUNDS; round++) {
  const probe = probing()
  const started = performance.now()
  const made = (await (await ask('/v1/tasks/create', { method: 'POST', body })).json()) as { task_id: string }
  for (;;) {
    const { status } = (await (await ask(`/v1/tasks/${made.task_id}?limit=1`)).json()) as { status: string }
    if (status === 'completed') break
    await wait(10)
  }
  times.push(performance.now() - started)
  slowest.push(await probe.end())
}
const sorted = times.toSorted((a, b) => a - b)
process.stdout.write(
  `${ITEMS} detections in a task: best ${sorted[0]!.toFixed(0)} ms, median ${sorted[ROUNDS >> 1]!.toFixed(0)} ms; ` +
    `slowest answer to a probe meanwhile: median ${slowest.toSorted((a, b) => a - b)[ROUNDS >> 1]!.toFixed(0)} ms\n`,
)
child.kill()

function ask(path: string, more: RequestInit = {}): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, { headers, ...more })
}

function probing(): { end(): Promise<number> } {
  let isOver = false
  let slowestMs = 0
  const work = (async () => {
    while (!isOver) {
      const started = performance.now()
      await (await fetch(`http://127.0.0.1:${port}/health/live`)).text()
      slowestMs = Math.max(slowestMs, performance.now() - started)
      await wait(2)
    }
  })()
  return {
    end: async () => {
      isOver = true
      await work
      return slowestMs
    },
  }
}

async function firstLine({ stdout }: ChildProcess): Promise<string> {
  for await (const line of createInterface(stdout!)) return line
  throw new Error('the server ended')
}
