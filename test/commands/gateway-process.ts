import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { endWith, GATEHOUSE, plainEnvironment } from '../e2e/programs.ts'

/** `gatehouse proxy`, or another, with the `g.yaml` of a folder, in a process of its own; resolves when it is ready. */
export async function start(
  t: Test,
  folder: string,
  command: 'proxy' | 'up' | 'inject' = 'proxy',
  variables: NodeJS.ProcessEnv = {},
) {
  const child = spawn(process.execPath, [GATEHOUSE, command, '--config', 'g.yaml'], {
    cwd: folder,
    env: plainEnvironment(folder, variables),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  endWith(t, child)
  let said = ''
  const ready = Promise.withResolvers<{ manage: string; listen: string }>()
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    said += chunk
    const line = said.split('\n').find((each) => each.includes('"message":"ready"') && each.endsWith('}'))
    if (line !== undefined) ready.resolve(JSON.parse(line))
  })
  const ended = once(child, 'exit')
  const { manage, listen } = await Promise.race([
    ready.promise,
    ended.then(() => assert.fail(`it ended: ${said}`)),
  ])
  return {
    manage,
    listen,
    said: () => said,
    hangUp: () => child.kill('SIGHUP'),
    async stop(signal: 'SIGINT' | 'SIGTERM' = 'SIGINT') {
      child.kill(signal)
      assert.deepEqual(await ended, [0, null])
    },
    /** Waits until a metric has this value, or a counter at least this one, for as long as the test may take. */
    async until(metric: string, value: number) {
      const isCounter = /_total\b/.test(metric)
      for (;;) {
        const metrics = await (await fetch(`http://${manage}/metrics`)).text()
        const line = metrics.split('\n').find((each) => each.startsWith(`gatehouse_${metric} `))
        const found = Number(line?.slice(line.lastIndexOf(' ') + 1))
        if (isCounter ? found >= value : found === value) return
        await wait(50)
      }
    },
  }
}

/** What another command prints. */
export async function run(folder: string, ...argv: readonly string[]): Promise<string> {
  const env = plainEnvironment(folder)
  const child = spawn(process.execPath, [GATEHOUSE, ...argv], { cwd: folder, env })
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  assert.equal(child.exitCode, 0, err)
  return out
}
