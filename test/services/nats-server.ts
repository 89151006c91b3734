import { join } from 'node:path'
import { serveFor } from './server-process.ts'

/** NATS with JetStream, for as long as the process in the first argument lives. */
await serveFor(
  Number(process.argv[2]),
  (port) => `nats://127.0.0.1:${port}`,
  (folder, port) => ({
    program: 'nats-server',
    argv: ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', join(folder, 'jetstream')],
    ready: 'Server is ready',
  }),
)
