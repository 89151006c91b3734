import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { cutOff } from '../../src/proxy/connection/cut-off.ts'

test('what is cut off is seen to be cut off', async (t) => {
  const { ours, theirs } = await connected(t)
  ours.write('half of an ans')
  const [[error]] = await Promise.all([once(theirs, 'error'), once(ours, 'close'), cutOff(ours)])
  assert.equal(error.code, 'ECONNRESET')
})

test('so is what was about to end, and nothing of it stays', async (t) => {
  const { ours, theirs } = await connected(t)
  ours.end('all of an answer')
  await Promise.all([once(theirs, 'close'), once(ours, 'close'), cutOff(ours)])
  assert.deepEqual([ours.destroyed, theirs.destroyed], [true, true])
})

test('cut off before it is connected', async (t) => {
  const { ours, port } = await connected(t)
  const late = connect(port)
  late.on('error', () => undefined)
  await Promise.all([once(late, 'close'), cutOff(late)])
  assert.equal(late.destroyed, true)
  ours.destroy()
})

async function connected(t: Test): Promise<{ ours: Socket; theirs: Socket; port: number }> {
  const server = createServer({ allowHalfOpen: true }, (socket) =>
    socket.on('error', () => undefined).resume(),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const theirs = connect(port).resume()
  theirs.on('error', () => undefined)
  const [ours] = (await once(server, 'connection')) as [Socket]
  t.teardown(() => theirs.destroy())
  t.teardown(() => server.close())
  return { ours, theirs, port }
}
