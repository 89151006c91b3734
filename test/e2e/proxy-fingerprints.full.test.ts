import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import type { Finding } from '../../src/capture/finding.ts'
import { startGatehouse } from './gatehouse.ts'
import { http2Openings } from './http2-openings.ts'
import { analyze, captureLoopback } from './network-capture.ts'
import {
  ARE_REQUIRED,
  missing,
  noCapture,
  plainEnvironment,
  run,
  skipped,
  temporaryFolder,
} from './programs.ts'
import { isOf, JAVA_CLIENT, pathOf, REAL_CLIENTS, type RealClient } from './real-clients.ts'

/**
 * Real clients come to an app through the proxy while tcpdump listens between them. The fingerprints that the app is
 * told have to be those that `gatehouse analyze`, and for HTTP/2 Wireshark, find in the capture.
 */
test('fingerprints: the app is told what a capture of the same connections shows', {
  skip: noCapture(),
}, async (t) => {
  const folder = temporaryFolder(t)
  const app = await startApp(t)
  const secretsFile = join(folder, 'keys.log')
  writeFileSync(secretsFile, '')
  const gatehouse = await startGatehouse(t, {
    command: 'up',
    upstream: app.url,
    argv: ['--workers', '2'],
    secretsFile,
  })
  const capturing = await captureLoopback(t, `tcp port ${gatehouse.port}`)
  const installed = REAL_CLIENTS.filter(({ program }) => missing(program) === false)
  writeFileSync(join(folder, 'Client.java'), JAVA_CLIENT)
  // A few at a time: they start faster than they would all at once.
  const waiting = [...installed]
  const lane = async (): Promise<void> => {
    for (let client = waiting.pop(); client !== undefined; client = waiting.pop())
      await visit(client, gatehouse.port, folder)
  }
  await Promise.all([lane(), lane(), lane()])
  const capture = join(folder, 'capture.pcap')
  writeFileSync(capture, await capturing.end())

  const told = byRequest(app.requests)
  const shown = byRequest(shownBy(await analyze('--keylog', secretsFile, capture)))
  for (const client of REAL_CLIENTS) {
    const { name } = client
    t.test(name, { skip: skipped(client.program) }, async () => {
      const requests = [...told.keys()].filter((request) => isOf(name, request.split(' ')[1]!.split('?')[0]!))
      assert.ok(requests.length > 0, 'the app was asked')
      for (const request of requests)
        assert.deepEqual(
          told.get(request)!.map(fingerprintsOf),
          shown.get(request)?.map(fingerprintsOf),
          request,
        )
    })
  }

  t.test('HTTP/2, as Wireshark reads it', { skip: skipped('tshark') }, async () => {
    const openings = await http2Openings(capture, secretsFile, gatehouse.port, folder)
    const read = new Map(openings.map(({ clientPort, text }) => [clientPort, text]))
    let compared = 0
    for (const [request, requests] of shown) {
      const expected = requests.map(({ port }) => read.get(port) ?? null)
      assert.deepEqual(told.get(request)?.map(({ http2 }) => http2) ?? [], expected, request)
      compared += expected.filter((text) => text !== null).length
    }
    assert.ok(compared >= 6, `${compared} requests over HTTP/2`)
  })

  t.test(
    'nothing that the app was asked is not in the capture, and nothing is missing at the app',
    async () => {
      assert.deepEqual([...shown.keys()].sort(), [...told.keys()].sort())
    },
  )

  t.test('ten real clients at least', { skip: !ARE_REQUIRED && 'none is required here' }, async () => {
    assert.ok(new Set(installed.map(({ program }) => program)).size >= 10)
  })
})

/** One request, as the app was told of it or as a capture shows it. */
interface Fingerprinted {
  readonly method: string
  readonly path: string
  readonly ja4: string | null
  readonly ja4s: string | null
  readonly ja4h: string | null
}

interface Told extends Fingerprinted {
  readonly http2: string | null
}

interface Shown extends Fingerprinted {
  readonly port: number
}

async function startApp(t: Test): Promise<{ url: string; requests: readonly Told[] }> {
  const requests: Told[] = []
  const server = createServer((request, response) => {
    requests.push(toldBy(request.method!, request.url!, request.headers))
    request.resume().on('end', () => {
      response.setHeader('Set-Cookie', ['b=2', 'a=1'])
      response.setHeader('Content-Type', 'text/html')
      response.end(request.url === pathOf('chromium') ? `<img src=${request.url}/2>` : '<p>ok')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

function toldBy(method: string, path: string, headers: IncomingHttpHeaders): Told {
  const header = (name: string): string | null => (headers[name] as string | undefined) ?? null
  return {
    method,
    path,
    ja4: header('x-ja4-fingerprint'),
    ja4s: header('x-ja4s-fingerprint'),
    ja4h: header('x-ja4h-fingerprint'),
    http2: header('x-http2-fingerprint'),
  }
}

function shownBy(findings: readonly Finding[]): Shown[] {
  const handshakes = new Map(
    findings.flatMap((found) => (found.kind === 'tls' ? [[found.src_port, found] as const] : [])),
  )
  return findings.flatMap((found) => {
    if (found.kind !== 'http') return []
    const { src_port: port, method, path, ja4h } = found
    const { ja4, ja4s } = handshakes.get(port)!
    return [{ port, method, path, ja4, ja4s, ja4h }]
  })
}

/** Requests of the same method and path come one after the other, on one connection or on several. */
function byRequest<Request extends Fingerprinted>(requests: readonly Request[]): Map<string, Request[]> {
  return Map.groupBy(requests, ({ method, path }) => `${method} ${path}`)
}

function fingerprintsOf({ ja4, ja4s, ja4h }: Fingerprinted): Pick<Fingerprinted, 'ja4' | 'ja4s' | 'ja4h'> {
  return { ja4, ja4s, ja4h }
}

async function visit(client: RealClient, port: number, folder: string): Promise<void> {
  const path = pathOf(client.name)
  const argv = client.argv({ url: `https://localhost:${port}${path}`, port, path, folder })
  const input = client.input?.(path)
  const env = plainEnvironment(folder, { NODE_TLS_REJECT_UNAUTHORIZED: '0' })
  await run(client.program, argv, { env, ...(input !== undefined && { input }) })
}
