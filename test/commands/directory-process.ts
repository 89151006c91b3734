import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { endWith, GATEHOUSE, plainEnvironment } from '../e2e/programs.ts'

/** `gatehouse sign directory --serve` with the keys of a file; `place`: the address that it prints. */
export async function serveDirectory(
  t: Test,
  folder: string,
  file: string,
): Promise<{ child: ChildProcess; place: string }> {
  const argv = ['sign', 'directory', '--key', file, '--serve', '127.0.0.1:0']
  const child = spawn(process.execPath, [GATEHOUSE, ...argv], {
    env: plainEnvironment(folder),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  endWith(t, child)
  const [place] = (await once(createInterface(child.stdout), 'line')) as [string]
  return { child, place }
}
