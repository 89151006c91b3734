import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test } from 'tap'
import { bodyOf, startApp } from './app.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { endWith, plainEnvironment, skipped, temporaryFolder } from './programs.ts'

const BLOCK = randomBytes(2 ** 20)
/** In full where it is fastest. */
const LENGTHS = { '--http1.1': 2 ** 30, '--http2': 2 ** 28 }
const WARM_UP = 2 ** 25
/** What the process may grow by meanwhile: V8 lets 64 MiB of buffers come together before it collects them. */
const GROWTH_MAX = 128 * 2 ** 20

test('large bodies: a GiB each way arrives as it was sent, and leaves no trace in memory', {
  skip: skipped('curl'),
}, async (t) => {
  const app = await startApp(t, {
    '/download': async (request, response) => {
      const length = Number(request.headers['x-length'])
      response.setHeader('Content-Length', length)
      await writeBlocks(response, length)
    },
    '/upload': async (request, response) => {
      await bodyOf(request)
      response.end(app.asked.at(-1)!.body)
    },
  })
  const gatehouse = await startGatehouse(t, { upstream: app.url })
  const env = plainEnvironment(temporaryFolder(t))
  const start = (program: string, ...argv: readonly string[]) => {
    const child = spawn(program, argv, { env, stdio: ['pipe', 'pipe', 'inherit'] })
    endWith(t, child)
    return child
  }
  for (const [version, large] of Object.entries(LENGTHS)) {
    const options = ['-sS', '--cacert', gatehouse.caFile, version]
    const download = async (length: number): Promise<string> => {
      const argv = [...options, '-H', `X-Length: ${length}`, `${gatehouse.url}/download`]
      const child = start('sh', '-c', 'curl "$@" | sha256sum', 'sh', ...argv)
      return (await text(child.stdout)).slice(0, 64)
    }
    const upload = async (length: number): Promise<string> => {
      const child = start('curl', ...options, '-T', '-', '-H', 'Expect:', `${gatehouse.url}/upload`)
      void writeBlocks(child.stdin, length)
      return text(child.stdout)
    }
    for (const [name, transfer] of Object.entries({ download, upload })) {
      t.test(`${name} ${version}`, async (t) => {
        assert.equal(await transfer(WARM_UP), hashOf(WARM_UP))
        const memory = watchMemory(gatehouse)
        const startedMs = performance.now()
        assert.equal(await transfer(large), hashOf(large))
        const { growth, skip } = memory.end()
        t.comment(
          `${Math.round(performance.now() - startedMs)} ms, grew by ${Math.round(growth / 2 ** 20)} MiB`,
        )
        t.ok(growth < GROWTH_MAX, `grew by ${growth} bytes`, { skip })
      })
    }
  }
})

async function writeBlocks(stream: Writable, length: number): Promise<void> {
  for (let sent = 0; sent < length; sent += BLOCK.length) {
    if (!stream.write(BLOCK)) await once(stream, 'drain')
  }
  stream.end()
}

function hashOf(length: number): string {
  const hash = createHash('sha256')
  for (let sent = 0; sent < length; sent += BLOCK.length) hash.update(BLOCK)
  return hash.digest('hex')
}

/** How far the process grows beyond what it has now. */
function watchMemory({ pid }: RunningGatehouse): { end(): { growth: number; skip: string | false } } {
  const file = `/proc/${pid}/statm`
  if (!existsSync(file)) return { end: () => ({ growth: 0, skip: 'there is no /proc' }) }
  const resident = (): number => Number(readFileSync(file, 'latin1').split(' ')[1]) * PAGE_BYTES
  const before = resident()
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, resident())
  }, 20)
  return {
    end: () => {
      clearInterval(timer)
      return { growth: Math.max(most, resident()) - before, skip: false }
    },
  }
}

const PAGE_BYTES = 4096
