import { makePostgres } from './postgres-programs.ts'
import { serveFor } from './server-process.ts'

/** PostgreSQL, for as long as the process in the first argument lives. It may lose data when the machine dies. */
await serveFor(
  Number(process.argv[2]),
  (port) => `postgres://root@127.0.0.1:${port}/postgres`,
  (folder, port) => ({
    ...makePostgres(folder, port, 'root', ['fsync=off', 'max_connections=300']),
    ready: 'ready to accept connections',
  }),
)
