import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { type Gate, startGate } from '../../test/proxy/test-gate.ts'
import { settingsFor } from '../../test/proxy/upstream-fixture.ts'

// What it costs to decide by the call of an MCP server, beside the same call that no rule asks about, and what it costs a
// request that no such rule is for. Both proxies are in this process and take turns; CPU time, because other programs run too.

const CALL = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name: 'search', arguments: { query: 'winter boots', limit: 10, filters: { size: [42, 43] } } },
})
const PLAIN = {
  rules: [{ name: 'no deletes', when: { path: '/mcp', header: { 'x-a': 'b' } }, action: 'block' }],
}
const ASKING = {
  rules: [{ name: 'no deletes', when: { path: '/mcp', mcp_tool: 'delete_*' }, action: 'block' }],
}

async function compare(): Promise<void> {
  const ends: (() => unknown)[] = []
  const owner = { teardown: (end: () => unknown) => void ends.push(end) } as unknown as Test
  const app = http.createServer((request, response) => {
    request.resume()
    response.end('{}')
  })
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  const upstreams = [settingsFor([`http://127.0.0.1:${(app.address() as AddressInfo).port}`])]
  const plain = await startGate(owner, { upstreams, policy: PLAIN })
  const asking = await startGate(owner, { upstreams, policy: ASKING })
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  const microseconds = async ({ plain: { port }, sightings }: Gate, path: string) => {
    ;(sightings as unknown[]).length = 0
    const begun = process.cpuUsage()
    for (let i = 0; i < CALLS; i++) await call(port, path, agent)
    const { user, system } = process.cpuUsage(begun)
    return (user + system) / CALLS
  }
  for (const path of ['/mcp', '/other']) {
    const more: number[] = []
    const ratios: number[] = []
    for (let round = -2; round < ROUNDS; round++) {
      const isFirst = round % 2 === 0
      const one = await microseconds(isFirst ? plain : asking, path)
      const other = await microseconds(isFirst ? asking : plain, path)
      if (round < 0) continue
      more.push(isFirst ? other - one : one - other)
      ratios.push(isFirst ? other / one : one / other)
    }
    const [added, ratio] = [median(more), median(ratios)]
    process.stdout.write(
      `${path}: ${added.toFixed(1)} µs more, ratio ${ratio.toFixed(3)}, median of ${ROUNDS} pairs\n`,
    )
  }
  agent.destroy()
  for (const end of ends.reverse()) await end()
  app.close()
  app.closeAllConnections()
}

async function call(port: number, path: string, agent: http.Agent): Promise<void> {
  const headers = { 'Content-Type': 'application/json', 'Content-Length': CALL.length }
  const request = http.request({ port, path, method: 'POST', headers, agent })
  request.end(CALL)
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  response.resume()
  await once(response, 'end')
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!
}

const CALLS = 500
const ROUNDS = Number(process.env['ROUNDS'] ?? 21)

await compare()
