import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'

/**
 * `npm run bench:tasks`: from asking for a task of 10,000 detections to its last result being there to read, on SQLite,
 * with the slowest answer to a probe that is asked meanwhile. The processor's time is what a
 * machine that others keep busy can be judged by. The figures are the best and the medians of some rounds.
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
const processorMs: number[] = []
for (let round = 0; round < ROUNDS; round++) {
  const probe = probing()
  const before = cpuMs()
  const started = performance.now()
  const made = (await (await ask('/v1/tasks/create', { method: 'POST', body })).json()) as { task_id: string }
  for (;;) {
    const { status } = (await (await ask(`/v1/tasks/${made.task_id}?limit=1`)).json()) as { status: string }
    if (status === 'completed') break
    await wait(10)
  }
  times.push(performance.now() - started)
  processorMs.push(cpuMs() - before)
  slowest.push(await probe.end())
}
const sorted = times.toSorted((a, b) => a - b)
process.stdout.write(
  `${ITEMS} detections in a task: best ${sorted[0]!.toFixed(0)} ms, median ${median(times)} ms, ` +
    `${median(processorMs)} ms of processor; slowest answer to a probe meanwhile: median ${median(slowest)} ms\n`,
)
child.kill()

function median(numbers: readonly number[]): string {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1]!.toFixed(0)
}

/** Of the process, in ticks of 10 ms. */
function cpuMs(): number {
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(stat[11]) + Number(stat[12])) * 10
}

async function ask(path: string, more: RequestInit = {}): Promise<Response> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers, ...more })
  if (!answer.ok) throw new Error(await answer.text())
  return answer
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
