import assert from 'node:assert/strict'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [['--name anna', makesAKey]]

async function makesAKey({ gate, shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  const [key] = /^ghk_\S+/m.exec(out) ?? assert.fail(out)
  const dashboard = await fetch(`${gate.manage}/dashboard/`)
  assert.match(await dashboard.text(), /<div id="app">/)
  const { status } = await fetch(`${gate.manage}/v1/agents`, { headers: { authorization: `Bearer ${key}` } })
  assert.equal(status, 200)
}
