import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { made } from '../../test/identity/forgeries.ts'
import { newSigner } from '../../test/identity/signer.ts'
import { listening, makePlace, startApp } from './contenders.ts'
import { connect, measure, median, portOf, startGate, type Taken } from './others.ts'

/**
 * `npm run bench:flood [-- ROUNDS]`: how long others wait while 5,000 requests a second come with signatures that do not
 * hold: each says a key that is known, and comes from an address of its own, so that nothing is saved but by what there is
 * in all. Beside it the same flood without signatures, and none at all; they take turns. The gateway has one processor, an
 * app, the flood and the others have the other.
 */
async function main(rounds: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'flood-'))
  const place = makePlace(folder, APP_PORT)
  const app = startApp(place)
  await listening(place.appPort)
  const agents = createServer((_, response) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: [signer.jwk] })),
  ).listen(0, '127.0.0.1')
  await once(agents, 'listening')
  const gate = await startGate(folder, place.appPort, SETTINGS)
  const id = `http://127.0.0.1:${portOf(agents)}`
  const taken = new Map<string, Taken[]>(KINDS.map((kind) => [kind, []]))
  try {
    for (let round = 0; round <= rounds; round++)
      for (const kind of KINDS) {
        const argv = ['flood', String(gate.port), id, kind, signer.key.thumbprint]
        const sample = await measure(gate, kind === 'none' ? null : argv)
        if (round > 0) taken.get(kind)!.push(sample)
      }
    report(taken, await signatures(gate.manage))
  } finally {
    gate.child.kill('SIGINT')
    await once(gate.child, 'exit')
    agents.close().closeAllConnections()
    app.kill()
    await once(app, 'exit')
    rmSync(folder, { recursive: true, force: true })
  }
}

type Kind = (typeof KINDS)[number]

function report(taken: ReadonlyMap<string, readonly Taken[]>, found: string): void {
  const of = (kind: Kind, value: (sample: Taken) => number) => median(taken.get(kind)!.map(value))
  process.stdout.write(
    `${'flood'.padEnd(20)}${'answered/s'.padStart(12)}${'processor'.padStart(11)}${'p50 ms'.padStart(10)}${'p99 ms'.padStart(10)}${'x none'.padStart(8)}${'x unsigned'.padStart(12)}\n`,
  )
  for (const kind of KINDS) {
    const p99Ms = of(kind, ({ p99Ms }) => p99Ms)
    const ratios = (['none', 'unsigned'] as const).map((other) =>
      median(taken.get(kind)!.map((sample, i) => sample.p99Ms / taken.get(other)![i]!.p99Ms)),
    )
    const figures = [
      of(kind, ({ flood }) => flood)
        .toFixed(0)
        .padStart(12),
      `${(of(kind, ({ busy }) => busy) * 100).toFixed(0)} %`.padStart(11),
      of(kind, ({ p50Ms }) => p50Ms)
        .toFixed(2)
        .padStart(10),
      p99Ms.toFixed(2).padStart(10),
      ratios[0]!.toFixed(2).padStart(8),
      ratios[1]!.toFixed(2).padStart(12),
    ]
    process.stdout.write(`${kind.padEnd(20)}${figures.join('')}\n`)
  }
  process.stdout.write(`${found}\n`)
}

async function runFlood(port: number, id: string, kind: Kind, thumbprint: string): Promise<void> {
  const connections = await Promise.all(Array.from({ length: 16 }, () => connect(port)))
  const requests = Array.from({ length: 2_000 }, () => requestOf(port, id, kind, thumbprint))
  let answered = 0
  process.send!('begun')
  const startMs = performance.now()
  process.once('message', () => {
    process.send!(answered / ((performance.now() - startMs) / 1_000), () => process.exit(0))
  })
  let sent = 0
  for (;;) {
    const due = ((performance.now() - startMs) / 1_000) * FLOOD_PER_SECOND
    for (; sent < due; sent++) {
      const socket = connections[sent % connections.length]!
      // More waiting requests do not speed up anything.
      if (socket.waiting.length > 50) continue
      socket.waiting.push(() => answered++)
      socket.write(requests[sent % requests.length]!)
    }
    // So that each comes by itself, and not some at once.
    await turn()
  }
}

/** From an address of its own. */
function requestOf(port: number, id: string, kind: Kind, thumbprint: string): string {
  const address = `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`
  const lines = [`Host: localhost:${port}`, 'User-Agent: flood', 'Accept: */*', `X-Forwarded-For: ${address}`]
  if (kind === 'signed wrongly') {
    const authority = `localhost:${port}`
    const making = { keyid: thumbprint, signature: () => randomBytes(64) }
    const agent = { id, ed25519: signer, p256: signer, rsa: signer }
    const nowS = Math.floor(Date.now() / 1_000)
    const { headers } = made({ agent, stranger: signer, authority, nowS }, making)
    for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`)
  }
  return `GET /?id=7 HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`
}

async function signatures(manage: string): Promise<string> {
  const text = await (await fetch(`${manage}/metrics`)).text()
  return [...text.matchAll(/^gatehouse_signatures_total.*$/gm)].map(([line]) => line).join('\n')
}

const KINDS = ['none', 'unsigned', 'signed wrongly'] as const
const SETTINGS = 'proxy:\n  trusted_proxies: [127.0.0.1]\nfetch:\n  allow_private_addresses: true\n'
const FLOOD_PER_SECOND = 5_000
const APP_PORT = 18_081
const signer = newSigner('ed25519')

const [role = '5', port, id = '', kind, thumbprint = ''] = process.argv.slice(2)
if (role === 'flood') await runFlood(Number(port), id, kind as Kind, thumbprint)
else await main(Number(role))
