import assert from 'node:assert/strict'
import { freePort } from '../../ports.ts'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['sign request', signsAndVerifies],
  ['ok  fields', (_, example) => assert.deepEqual(steps(verified), steps(example))],
]

/** What `verify` printed. */
let verified = ''

async function signsAndVerifies({ shell }: Bench, example: string): Promise<void> {
  const port = await freePort()
  // It takes a moment before it answers.
  const [key, directory, ...rest] = example
    .replaceAll('127.0.0.1:7000', `127.0.0.1:${port}`)
    .trim()
    .split('\n')
  const waiting = `until (echo > /dev/tcp/127.0.0.1/${port}) 2> /dev/null; do sleep 0.1; done`
  const { out } = await shell([key, directory, waiting, ...rest, 'kill %1'].join('\n'))
  verified = out.replaceAll(`127.0.0.1:${port}`, '127.0.0.1:7000')
  assert.match(out, /^proven: /m)
}

/** What is checked, and how it ends. */
function steps(said: string): readonly string[] {
  return said
    .split('\n')
    .filter((line) => /^(?:ok|no|--) |^proven/.test(line))
    .map((line) => (line.startsWith('proven') ? line : line.slice(0, 15).trim()))
}
