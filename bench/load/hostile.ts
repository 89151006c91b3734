import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import tls from 'node:tls'
import { ABUSES } from '../../test/hostile/http2-abuse-cases.ts'
import { address6, hex } from '../../test/hostile/made-up.ts'
import { helloMessage, records } from '../../test/hostile/tls-hellos.ts'
import { data, getRequest, headers, PREFACE, settings } from '../../test/proxy/http2-frames.ts'
import { listening, makePlace, startApp } from './contenders.ts'
import { measure, median, startGate, type Taken } from './others.ts'

/**
 * `npm run bench:hostile [-- ROUNDS [NAME…]]`: how long others wait beside each kind of attack by slowness and number, and
 * beside none, in turns. Each is made at a rate of its own by one process that has what others leave; wanted is that the slowest of
 * a hundred of the others wait no more than three times as long as beside none. The gateway has one processor; the app, the
 * attack and the others have the other.
 */
async function main(rounds: number, names: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'hostile-'))
  const place = makePlace(folder, APP_PORT)
  const app = startApp(place)
  await listening(place.appPort)
  const gate = await startGate(folder, place.appPort, SETTINGS)
  const kinds = [NONE, ...Object.keys(ATTACKS).filter((name) => names.length === 0 || names.includes(name))]
  const taken = new Map<string, Taken[]>(kinds.map((name) => [name, []]))
  try {
    // Not measured: the first requests are compiled.
    await measure(gate, null)
    for (let round = 0; round < rounds; round++)
      for (const name of kinds) {
        const argv = name === NONE ? null : ['attack', String(gate.port), name]
        taken.get(name)!.push(await measure(gate, argv))
        // What is left of it is not the next one's.
        await wait(REST_MS)
      }
    report(taken)
  } finally {
    gate.child.kill('SIGINT')
    await once(gate.child, 'exit')
    app.kill()
    await once(app, 'exit')
    rmSync(folder, { recursive: true, force: true })
  }
}

function report(taken: ReadonlyMap<string, readonly Taken[]>): void {
  const row = (name: string, ...cells: readonly string[]) =>
    process.stdout.write(`${name.padEnd(22)}${cells.map((cell) => cell.padStart(11)).join('')}\n`)
  row('attack', 'done/s', 'processor', 'p50 ms', 'p99 ms', 'x none')
  for (const [name, samples] of taken) {
    const of = (value: (sample: Taken) => number) => median(samples.map(value))
    const ratio = median(samples.map(({ p99Ms }, round) => p99Ms / taken.get(NONE)![round]!.p99Ms))
    row(
      name,
      of(({ flood }) => flood).toFixed(0),
      `${(of(({ busy }) => busy) * 100).toFixed(0)} %`,
      of(({ p50Ms }) => p50Ms).toFixed(2),
      of(({ p99Ms }) => p99Ms).toFixed(2),
      ratio.toFixed(2),
    )
  }
}

/** Something that is done again and again: so often in a second. */
interface Attack {
  readonly perSecond: number
  /** The `number`th time. What it resolves to is not waited for. */
  act(port: number, number: number): unknown
}

async function attack(port: number, { perSecond, act }: Attack): Promise<void> {
  const startMs = performance.now()
  let done = 0
  let hasBegun = false
  process.once('message', () => {
    process.send!(done / ((performance.now() - startMs) / 1_000), () => {
      // The gateway would go on reading what its kernel holds of them: up to 6 MB each, for minutes.
      for (const socket of dialed) socket.resetAndDestroy()
      setImmediate(() => process.exit(0))
    })
  })
  for (;;) {
    const due = ((performance.now() - startMs) / 1_000) * perSecond
    for (; done < due; done++) act(port, done)
    if (!hasBegun && done >= perSecond) hasBegun = process.send!('begun')
    await wait(2)
  }
}

/** So many connections, of which each is taken up anew where it has ended, and told one thing more each second. */
function slow(first: string, more: string, isDeaf = false): Attack {
  const open: (tls.TLSSocket | undefined)[] = []
  return {
    perSecond: SLOW_CONNECTIONS,
    act: (port, number) => {
      const place = number % SLOW_CONNECTIONS
      const socket = open[place]
      if (socket !== undefined && !socket.destroyed) {
        if (more !== '' && socket.writableLength < 65_536) socket.write(more)
        return
      }
      const made = dial(port, number, 'http/1.1', () => made.write(first))
      if (isDeaf) made.pause()
      else made.resume()
      open[place] = made
    },
  }
}

/** Ten uploads that never end, in pieces of one byte, as fast as they are taken. */
function pieces(protocol: 'http/1.1' | 'h2', first: string | Buffer, piece: string | Buffer): Attack {
  const open: (tls.TLSSocket | undefined)[] = []
  const burst = Buffer.concat(Array.from({ length: PIECES_AT_ONCE }, () => Buffer.from(piece)))
  return {
    perSecond: PIECES_CONNECTIONS * 50,
    act: (port, number) => {
      const place = number % PIECES_CONNECTIONS
      const socket = open[place]
      if (socket !== undefined && !socket.destroyed) {
        if (socket.writableLength < 65_536) socket.write(burst)
        return
      }
      const made = dial(port, number, protocol, () => made.write(first))
      open[place] = made.resume()
    },
  }
}

/** Requests over a few connections, each of which is taken up anew where it has been ended. */
function requests(perSecond: number, head: (number: number) => string): Attack {
  const open: (tls.TLSSocket | undefined)[] = []
  return {
    perSecond,
    act: (port, number) => {
      const place = number % REQUEST_CONNECTIONS
      const known = open[place]
      const socket = known === undefined || known.destroyed ? dial(port, number, 'http/1.1') : known
      open[place] = socket.resume()
      if (socket.writableLength < 1_000_000) socket.write(head(number))
    },
  }
}

/** One of those that the tests try, from its beginning, until its connection is ended for it or it has been done. */
function abuse(name: string): Attack {
  const { first = [], count, each, isDeaf = false } = ABUSES.find((other) => other.name.includes(name))!
  return {
    perSecond: ABUSES_PER_SECOND,
    act: (port, number) => {
      const socket = dial(port, number, 'h2', async () => {
        socket.write(Buffer.concat([PREFACE, settings(), ...first]))
        for (let index = 0; index < count && !socket.destroyed; index += FRAMES_AT_ONCE) {
          const size = Math.min(FRAMES_AT_ONCE, count - index)
          socket.write(Buffer.concat(Array.from({ length: size }, (_, at) => each(index + at))))
          await wait(1)
        }
        setTimeout(() => socket.destroy(), 1_000)
      })
      if (isDeaf) socket.pause()
      else socket.resume()
    },
  }
}

/** From one of some addresses: of each so many connections may be open. */
function dial(
  port: number,
  number: number,
  protocol: string,
  begin: () => unknown = () => undefined,
): tls.TLSSocket {
  const plain = net.connect({ port, host: '127.0.0.1', localAddress: addressOf(number) })
  const socket = tls.connect({ socket: plain, rejectUnauthorized: false, ALPNProtocols: [protocol] }, begin)
  dialed.add(plain)
  socket.on('close', () => dialed.delete(plain))
  return socket.on('error', () => socket.destroy()).on('end', () => socket.destroy())
}

function raw(port: number, number: number, bytes: Buffer): void {
  const socket = net.connect({ port, host: '127.0.0.1', localAddress: addressOf(number) })
  socket.on('error', () => undefined).resume()
  socket.write(bytes)
  setTimeout(() => socket.destroy(), 1_000)
}

function addressOf(number: number): string {
  return `127.0.1.${1 + (number % ADDRESSES)}`
}

function headOf(...lines: readonly string[]): string {
  return `GET / HTTP/1.1\r\nHost: localhost\r\n${lines.join('\r\n')}\r\n\r\n`
}

/** Long, and near to what patterns look for, so that what goes back tries for long. */
const PUMPS = [
  'a',
  'bot ',
  'Mozilla/5.0 (',
  '(((',
  'x/1.',
  ',;',
  '"',
  '\\"',
  ' ',
  'q=0.',
  '1.',
  'sig1=("',
  'a=b; ',
]
const PUMPED = [
  'User-Agent',
  'Accept',
  'Accept-Language',
  'Cookie',
  'Referer',
  'Signature-Input',
  'Forwarded',
  'Via',
]

const dialed = new Set<net.Socket>()

const SLOW_CONNECTIONS = 500
const PIECES_CONNECTIONS = 10
const PIECES_AT_ONCE = 2_000
const REQUEST_CONNECTIONS = 16
const ABUSES_PER_SECOND = 2
const FRAMES_AT_ONCE = 100
const ADDRESSES = 16
const REST_MS = 1_000
const APP_PORT = 18_081
const NONE = 'none'
const SETTINGS = 'proxy:\n  trusted_proxies: [127.0.1.0/24]\n'
const HELLO = records(helloMessage())

const ATTACKS: Readonly<Record<string, Attack>> = {
  'slow headers': slow('GET / HTTP/1.1\r\nHost: localhost\r\n', 'X-A: b\r\n'),
  // An answer ahead of its body would end the connection, and its attack would be one by handshakes.
  'slow bodies': slow('POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n', 'x'),
  'slow reads': slow('GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n', '', true),
  'one-byte chunks': pieces(
    'http/1.1',
    'POST /upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n',
    '1\r\nx\r\n',
  ),
  'one-byte DATA frames': pieces(
    'h2',
    Buffer.concat([
      PREFACE,
      settings(),
      headers(1, getRequest({ ':method': 'POST', ':path': '/upload' }), { hasEnded: false }),
    ]),
    data(1, 'x', false),
  ),
  'half open': { perSecond: 500, act: (port, number) => raw(port, number, HELLO.subarray(0, -1)) },
  'connection flood': {
    perSecond: 100,
    act: (port, number) => {
      const socket = dial(port, number, 'http/1.1', () => socket.destroy())
    },
  },
  'header bombs': requests(50, (number) =>
    headOf(...Array.from({ length: 180 }, (_, index) => `X-${index}: ${hex(number, 64).repeat(4)}`)),
  ),
  'cookie bombs': requests(50, (number) => headOf(`Cookie: ${`${hex(number, 4)}=b; `.repeat(6_000)}a=b`)),
  'rapid reset': abuse('rapid reset'),
  'CONTINUATION flood': abuse('CONTINUATION flood'),
  'PING flood': abuse('PING flood'),
  'SETTINGS flood': abuse('SETTINGS flood'),
  MadeYouReset: abuse('MadeYouReset'),
  'HPACK bomb': abuse('HPACK bomb'),
  'strings for patterns': requests(100, (number) => {
    const pump = PUMPS[number % PUMPS.length]!
    return headOf(...PUMPED.map((name) => `${name}: ${pump.repeat(Math.ceil(6_000 / pump.length))}!`))
  }),
  'nothing in common': requests(500, (number) =>
    headOf(
      `User-Agent: bot-${number}/1 ${hex(number, 40)}`,
      `X-Forwarded-For: ${address6(number)}`,
      `X-${hex(number, 20)}: ${hex(number, 40)}`,
      `Cookie: c${number}=${hex(number, 20)}`,
      `Accept-Language: x${number}`,
    ),
  ),
  garbage: { perSecond: 200, act: (port, number) => raw(port, number, randomBytes(1_000)) },
}

const [role = '3', ...given] = process.argv.slice(2)
if (role === 'attack') await attack(Number(given[0]), ATTACKS[given[1]!]!)
else await main(Number(role), given)
