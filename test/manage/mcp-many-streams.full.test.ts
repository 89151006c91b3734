import assert from 'node:assert/strict'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { TestManagement } from './management.ts'
import { listening, modern, sent } from './mcp-client.ts'

test('500 streams at once, again and again: all are let go of, and memory stays flat', async (t) => {
  const manage = await TestManagement.start(t)
  const keys = await Promise.all(
    Array.from({ length: 5 }, (_, index) => manage.key({ name: `k${index}`, scopes: ['mcp', 'read'] })),
  )
  const rest: number[] = []
  for (let round = 0; round < 3; round++) {
    const before = heapBytes()
    const open = await Promise.all(
      Array.from({ length: 500 }, (_, index) => listening(manage.url, keys[index % 5]!)),
    )
    const each = (heapBytes() - before) / 500
    // Both ends of the connection are in this process.
    assert.ok(each < 100_000, `a stream takes ${Math.round(each)} bytes`)
    const heard = open.map((socket) => once(socket, 'data'))
    await manage.publish({ rules: [{ name: `r${round}`, when: {}, action: 'tag' }] })
    for (const [data] of await Promise.all(heard)) assert.match(String(data), /resources\/list_changed/)
    // Half of them say nothing and are gone, half end in order.
    for (const [index, socket] of open.entries())
      if (index % 2 === 0) socket.destroy()
      else socket.end()
    await Promise.all(open.map((socket) => socket.destroyed || once(socket.resume(), 'close')))
    for (let tries = 0; tries < 50; tries++) {
      await wait(20)
      if ((await Promise.all(keys.map((key) => sent(manage.url, key, modern('tools/list'))))).length === 5)
        break
    }
    rest.push(heapBytes())
  }
  const grown = rest.at(-1)! - rest[0]!
  assert.ok(
    grown < 4_000_000,
    `after three rounds ${rest.map((bytes) => Math.round(bytes / 1000)).join(', ')} kB`,
  )
  assert.deepEqual(manage.failures, [])
})

function heapBytes(): number {
  collect()
  return process.memoryUsage().heapUsed
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
