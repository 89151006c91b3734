import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Test } from 'tap'
import { startGate } from '../../test/proxy/test-gate.ts'
import { settingsFor } from '../../test/proxy/upstream-fixture.ts'

// The processor time that a gate itself needs more for the call of an MCP server that a rule asks about, and for another
// request. Two gates run in processes of their own, one with a rule about calls and one with a rule about a header. They
// take turns with the same requests. Client and app are in this process and are not measured.

const CALL = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name: 'search', arguments: { query: 'winter boots', limit: 10, filters: { size: [42, 43] } } },
})
const WHEN = { off: { header: { 'x-a': 'b' } }, on: { mcp_tool: 'delete_*' } } as const
type Conditions = keyof typeof WHEN

interface GateProcess {
  readonly child: ChildProcess
  readonly port: number
}

/** The process of a gate: it says its port, and its processor time so far in µs when it is asked. */
async function serve(conditions: Conditions, app: string): Promise<void> {
  const owner = { teardown: () => undefined } as unknown as Test
  const policy = {
    rules: [{ name: 'no deletes', when: { path: '/mcp', ...WHEN[conditions] }, action: 'block' }],
  }
  const { plain, sightings, done } = await startGate(owner, { upstreams: [settingsFor([app])], policy })
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    const [records, answers] = [sightings, done] as unknown as [unknown[], unknown[]]
    process.send!({ usedUs: user + system, requests: records.length })
    records.length = 0
    answers.length = 0
  })
  process.send!(plain.port)
}

async function compare(): Promise<void> {
  const app = http.createServer((request, response) => {
    request.resume()
    response.end('{}')
  })
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}`
  const [off, on] = await Promise.all([started('off', url), started('on', url)])
  for (const [name, path, isSplit] of [
    ['a call that the rule is for', '/mcp', false],
    ['the same, with its body in a packet of its own', '/mcp', true],
    ['another request', '/other', false],
  ] as const) {
    const more: number[] = []
    const ratios: number[] = []
    const costs: number[] = []
    for (let round = -WARMUPS; round < ROUNDS; round++) {
      const isFirst = round % 2 === 0
      const one = await microseconds(isFirst ? off : on, path, isSplit)
      const other = await microseconds(isFirst ? on : off, path, isSplit)
      if (round < 0) continue
      const [without, withRule] = isFirst ? [one, other] : [other, one]
      more.push(withRule - without)
      ratios.push(withRule / without)
      costs.push(without)
    }
    const [low, middle, high] = quarters(more)
    process.stdout.write(
      `${name}: ${middle.toFixed(1)} µs more (half of the pairs: ${low.toFixed(1)} to ${high.toFixed(1)}), ` +
        `${quarters(ratios)[1].toFixed(2)} × ${quarters(costs)[1].toFixed(0)} µs, ${ROUNDS} pairs of ${CALLS} requests\n`,
    )
  }
  for (const { child } of [off, on]) child.kill()
  app.close()
  app.closeAllConnections()
}

async function started(conditions: Conditions, app: string): Promise<GateProcess> {
  const child = fork(import.meta.filename, [conditions, app])
  const [port] = (await once(child, 'message')) as [number]
  return { child, port }
}

/** What the gate needs for one request. */
async function microseconds({ child, port }: GateProcess, path: string, isSplit: boolean): Promise<number> {
  // New ones for each turn: a gate closes connections that are idle while the other one has its turn.
  const connections = Array.from({ length: CONNECTIONS }, () => connect(port, '127.0.0.1').setNoDelay(true))
  await Promise.all(connections.map((socket) => once(socket, 'connect')))
  const before = await usageOf(child)
  const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n`
  const pieces = [`${head}Content-Length: ${CALL.length}\r\n\r\n`, CALL]
  const request = isSplit ? pieces : [pieces.join('')]
  await Promise.all(connections.map((socket) => calls(socket, request, CALLS / CONNECTIONS)))
  const after = await usageOf(child)
  for (const socket of connections) socket.destroy()
  if (after.requests !== CALLS) throw new Error(`${after.requests} of ${CALLS} requests came`)
  return (after.usedUs - before.usedUs) / CALLS
}

async function usageOf(child: ChildProcess): Promise<{ readonly usedUs: number; readonly requests: number }> {
  child.send('')
  const [usage] = await once(child, 'message')
  return usage
}

/** One request after the other. Each answer ends with the body of the app. */
async function calls(socket: Socket, request: readonly string[], count: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let left = count
  const send = () => {
    const [first, second] = request
    socket.write(first!)
    if (second !== undefined) setImmediate(() => socket.write(second))
  }
  const came = (chunk: Buffer) => {
    if (!chunk.toString('latin1').includes('{}')) return
    if (--left === 0) resolve()
    else send()
  }
  socket.on('data', came).once('close', reject)
  send()
  await promise
  socket.off('data', came).off('close', reject)
}

function quarters(values: readonly number[]): [number, number, number] {
  const sorted = values.toSorted((a, b) => a - b)
  return [sorted[sorted.length >> 2]!, sorted[sorted.length >> 1]!, sorted[(sorted.length * 3) >> 2]!]
}

const CALLS = 2_000
const CONNECTIONS = 4
const WARMUPS = 4
const ROUNDS = Number(process.env['ROUNDS'] ?? 21)

const [conditions, app] = process.argv.slice(2)
if (app === undefined) await compare()
else await serve(conditions as Conditions, app)
