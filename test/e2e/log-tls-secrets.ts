import { appendFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import tls from 'node:tls'

/**
 * Loaded into the program by the tests (`node --import`): appends the secrets of each TLS connection it takes to the file
 * that E2E_TLS_SECRETS names, so that a capture can be read whatever the client was. The program itself cannot do that.
 */
const file = process.env['E2E_TLS_SECRETS']!
const { createServer } = tls

tls.createServer = ((...given: Parameters<typeof createServer>) => {
  const server = createServer(...given)
  return server.on('keylog', (line: Buffer) => appendFileSync(file, line))
}) as typeof createServer
syncBuiltinESMExports()
