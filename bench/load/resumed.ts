import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { connect } from 'node:tls'

/**
 * `node bench/load/resumed.ts URL SECONDS`: a new connection for each request, each with a session of an earlier one.
 * Prints how many requests there were, and how many of them failed or resumed no session.
 */
const { hostname, port, host, pathname } = new URL(process.argv[2]!)
const CLIENTS = 8
let requests = 0
let errors = -CLIENTS // the first of each has no session
const beganMs = performance.now()
const endMs = beganMs + Number(process.argv[3]) * 1000

await Promise.all(Array.from({ length: CLIENTS }, client))
process.stdout.write(`${requests} requests in ${(performance.now() - beganMs) / 1000} s, ${errors} errors\n`)

async function client(): Promise<void> {
  let session: Buffer | undefined
  while (performance.now() < endMs) {
    const socket = connect({
      ...{ host: hostname, port: Number(port), servername: 'localhost', rejectUnauthorized: false },
      ...(session !== undefined && { session }),
    })
    socket.on('session', (one: Buffer) => {
      session = one
    })
    await once(socket, 'secureConnect')
    const isResumed = socket.isSessionReused()
    socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    const answer = await text(socket)
    requests++
    if (!isResumed || !answer.startsWith('HTTP/1.1 200 ')) errors++
  }
}
