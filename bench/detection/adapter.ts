import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { PACKAGES } from './detectors.ts'
import type { Said } from './protocol.ts'

/** Loads a package of bench/detection/package.json. Typed by the adapter, because it may not be installed. */
export function load<T>(name: string): T {
  return createRequire(PACKAGES)(name) as T
}

/**
 * Serves a detector that knows User-Agents only, as a process of its own: prints `{"port":…}`, and ends with
 * its standard input.
 */
export async function serve(judge: (userAgent: string) => Said): Promise<void> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const { headers } = JSON.parse(Buffer.concat(parts).toString()) as { headers: Record<string, string> }
      const name = Object.keys(headers).find((each) => each.toLowerCase() === 'user-agent')
      const body = JSON.stringify({ verdict: judge(name === undefined ? '' : String(headers[name])) })
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(body)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
  process.stdin.resume().once('end', () => process.exit())
}
