import tls from 'node:tls'

/** `node waiting-connections.ts PORT COUNT`: so many connections that have made one request each, and then wait. */
const [port, count] = process.argv.slice(2).map(Number) as [number, number]
const BATCH = 50

for (let made = 0; made < count; made += BATCH)
  await Promise.all(Array.from({ length: Math.min(BATCH, count - made) }, dial))
process.stdout.write('ready\n')

function dial(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    })
    socket.once('data', () => resolve()).on('error', reject)
  })
}
