import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { Test } from 'tap'
import type { Finding } from '../../src/capture/finding.ts'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { memoryIo } from '../commands/memory-io.ts'
import { endWith, heard } from './programs.ts'

export interface NetworkCapture {
  /** The capture, once it contains everything that was sent. */
  end(): Promise<Buffer>
}

/** What goes over loopback, as far as `filter` lets it. */
export async function captureLoopback(t: Test, filter: string): Promise<NetworkCapture> {
  const socket = createSocket('udp4')
  await once(socket.bind(0, '127.0.0.1'), 'listening')
  t.teardown(() => socket.close())
  const { port } = socket.address()
  const argv = [
    ...['-i', 'lo', '--immediate-mode', '-U', '-B', '65536', '-s', '0', '-w', '-'],
    `${filter} or udp port ${port}`,
  ]
  const child = spawn('tcpdump', argv, { stdio: ['ignore', 'pipe', 'pipe'] })
  endWith(t, child)
  const chunks: Buffer[] = []
  let seen = Buffer.alloc(0)
  child.stdout.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    seen = Buffer.concat([seen.subarray(-END_MARK.length), chunk])
    if (seen.includes(END_MARK)) child.kill('SIGINT')
  })
  await heard(child.stderr, 'listening on')
  return {
    end: async () => {
      const closed = once(child, 'close')
      const timer = setTimeout(() => child.kill('SIGINT'), END_MS)
      socket.send(END_MARK, port, '127.0.0.1')
      await closed
      clearTimeout(timer)
      return Buffer.concat(chunks)
    },
  }
}

/** `gatehouse analyze --json` with these arguments, which must go well. */
export async function analyze(...given: readonly string[]): Promise<Finding[]> {
  const io = memoryIo()
  const exitCode = await runCli(COMMANDS, ['analyze', '--json', ...given], io)
  assert.deepEqual([exitCode, io.err], [0, ''])
  return io.out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}

/** Comes behind everything else, which is how it is known to be there. */
const END_MARK = Buffer.from('the end of what is to be captured')
const END_MS = 10_000
