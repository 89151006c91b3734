import assert from 'node:assert/strict'
import { freePort } from '../../ports.ts'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [['verify --listen', explainsRequests]]

async function explainsRequests({ shell }: Bench, example: string): Promise<void> {
  const port = await freePort()
  const verifier = example.trim().replace(':8000', `:${port}`)
  const asking = `until command curl -s http://127.0.0.1:${port}/; do sleep 0.1; done`
  const { out } = await shell(`${verifier} &\n${asking}\nkill %1`)
  assert.match(out, /unsigned/)
}
