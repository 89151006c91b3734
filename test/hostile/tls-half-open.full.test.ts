import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'tap'
import { startHolder } from './holder.ts'
import { helloMessage, records } from './tls-hellos.ts'
import { type Reading, startVictim, startWitness } from './victim.ts'

const IS_WHOLE = process.env['HOSTILE'] === 'whole'
const ROUNDS = IS_WHOLE ? 10 : 2
/** Of one address; beyond it more are tried, which are refused. */
const PER_ADDRESS = IS_WHOLE ? 1000 : 40
const ADDRESSES = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5', '127.0.0.6']
const TOO_MANY = 20
/** Long enough for a whole round to be there together. */
const TIMEOUT_MS = IS_WHOLE ? 20_000 : 1500

const HELLO = records(helloMessage())
/** How far they go, in turns. */
const WAYS: readonly Buffer[] = [Buffer.alloc(0), HELLO.subarray(0, 1), HELLO.subarray(0, -1), HELLO]

test('TLS: connections that are left half open are counted, bounded by address, and gone in time', {
  timeout: IS_WHOLE ? 1_200_000 : 120_000,
}, async (t) => {
  const app = await startHolder(t)
  const limits = {
    helloTimeoutMs: TIMEOUT_MS,
    handshakeTimeoutMs: TIMEOUT_MS,
    connectionsPerAddressMax: PER_ADDRESS,
  }
  const victim = await startVictim(t, { upstream: app.url, limits })
  const witness = startWitness(victim.port)
  const count = PER_ADDRESS * ADDRESSES.length
  const held: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const before = await victim.read()
    const sockets: net.Socket[] = []
    for (const address of ADDRESSES) {
      for (let index = 0; index < PER_ADDRESS; index++)
        sockets.push(await half(victim.port, address, WAYS[index % WAYS.length]!))
      const refused = Array.from({ length: TOO_MANY }, () => half(victim.port, address, HELLO).then(gone))
      await Promise.all(refused)
    }
    // A quarter has said hello: that is a handshake.
    await victim.settles('connections_open handshakes', count / WAYS.length)
    const during = await victim.read()
    assert.equal(failuresOf(during, before, 'too-many-connections'), ADDRESSES.length * TOO_MANY)
    await Promise.all(sockets.map(gone))
    for (const stage of ['opening', 'handshakes']) await victim.settles(`connections_open ${stage}`, 0)
    const after = await victim.read()
    assert.equal(failuresOf(after, before, 'hello-timeout'), (count / WAYS.length) * 3)
    assert.equal(failuresOf(after, before, 'handshake-timeout'), count / WAYS.length)
    held.push(after.heldBytes)
  }
  assert.ok((await witness.leave()) > 0)
  t.comment(
    `held after each round of ${count}: ${held.map((bytes) => `${(bytes / 1e6).toFixed(1)} MB`).join(', ')}`,
  )
  assert.ok(held.at(-1)! - held[0]! < 4_000_000, 'what they took is given back')
  t.comment(`${count * ROUNDS} connections`)
})

async function half(port: number, localAddress: string, bytes: Buffer): Promise<net.Socket> {
  const socket = net.connect({ port, host: '127.0.0.1', localAddress })
  socket.on('error', () => undefined).resume()
  await once(socket, 'connect')
  if (bytes.length > 0) socket.write(bytes)
  return socket
}

async function gone(socket: net.Socket): Promise<void> {
  if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve))
}

function failuresOf(after: Reading, before: Reading, reason: string): number {
  const name = `connection_failures_total ${reason}`
  return after.metrics[name]! - before.metrics[name]!
}
