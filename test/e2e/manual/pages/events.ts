import assert from 'node:assert/strict'
import { until } from '../../../until.ts'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['/v1/events?types=', listensToEvents],
  ['/v1/cases?status=open', acceptsCase],
]

async function listensToEvents({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /^retry: \d+$/m)
  assert.match(out, /^\{"events":\[/m)
}

async function acceptsCase({ shell }: Bench, example: string): Promise<void> {
  await shell('curl -k -o answer -H "X-Agent-Name: me" https://localhost:8443/')
  const [listed] = example.split('\n')
  let id = ''
  // Examples of other pages may have made cases.
  await until(async () => {
    const { json } = await shell(listed!)
    id = json[0].cases.find(({ reason }: { reason: string }) => reason === 'forged_headers')?.id ?? ''
    return id !== ''
  })
  const { json } = await shell(example, { instead: [['cas_x7c1Jq0aT5b2Lw9k', id]] })
  const [, events, changed] = json
  assert.equal(events.events[0].data.reason, 'forged_headers')
  assert.deepEqual([changed.id, changed.status, changed.note], [id, 'accepted', 'our own load test'])
}
