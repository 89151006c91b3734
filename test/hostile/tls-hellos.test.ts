import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'tap'
import { startHolder } from './holder.ts'
import { cuts, type Got, HELLOS, lies } from './tls-hello-cases.ts'
import { type Reading, startVictim, startWitness } from './victim.ts'

const LIMITS = { helloTimeoutMs: 400, handshakeTimeoutMs: 400 }
const AT_ONCE = 40

test('TLS: no hello is more than a failure that is counted, whatever it is, and others are served', {
  timeout: 120_000,
}, async (t) => {
  const app = await startHolder(t)
  const victim = await startVictim(t, { upstream: app.url, limits: LIMITS })
  const witness = startWitness(victim.port)
  const before = await victim.read()

  await inRounds(HELLOS, async ({ name, bytes, gets }) => {
    const got = await spoken(victim.port, bytes)
    if (got !== gets) t.fail(`${name}: it gets ${got}, and not ${gets}`)
  })
  const liars = lies()
  await inRounds(liars, async ({ name, bytes }) => {
    if ((await spoken(victim.port, bytes)) === 'words') t.fail(`${name}: it is taken for HTTP`)
  })
  const cut = cuts()
  await inRounds(cut, async (bytes) => {
    assert.equal(await spoken(victim.port, bytes, true), 'end', `cut at ${bytes.length}`)
  })

  for (const stage of ['opening', 'handshakes', 'h2']) await victim.settles(`connections_open ${stage}`, 0)
  const after = await victim.read()
  const count = HELLOS.length + liars.length + cut.length
  assert.equal(failures(after) - failures(before), count, 'each is counted, and once')
  assert.ok((await witness.leave()) > 0)
  assert.ok(
    after.heldBytes - before.heldBytes < 4_000_000,
    `${after.heldBytes - before.heldBytes} bytes more`,
  )
  t.comment(`${count} hellos`)
})

/** What comes first for it; the connection is gone then. A client that `leaves` ends its side behind it. */
async function spoken(port: number, bytes: Buffer, leaves = false): Promise<Got> {
  const socket = net.connect({ port, host: '127.0.0.1' })
  await once(socket, 'connect')
  socket.on('error', () => undefined)
  const heard: Promise<Buffer | null> = new Promise((resolve) => {
    socket.once('data', resolve).once('close', () => resolve(null))
  })
  if (leaves) socket.end(bytes)
  else socket.write(bytes)
  const first = await heard
  socket.destroy()
  if (first === null) return 'end'
  return first[0] === 21 ? 'alert' : first[0] === 22 ? 'hello' : 'words'
}

async function inRounds<Each>(list: readonly Each[], act: (each: Each) => Promise<void>): Promise<void> {
  for (let at = 0; at < list.length; at += AT_ONCE) await Promise.all(list.slice(at, at + AT_ONCE).map(act))
}

function failures({ metrics }: Reading): number {
  return Object.entries(metrics)
    .filter(([name]) => name.startsWith('connection_failures_total'))
    .reduce((sum, [, value]) => sum + value, 0)
}
