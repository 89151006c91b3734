import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DIRECTORY } from '../../classify/known/signer-id.ts'
import { type HostPort, listenAddress } from '../../config/network-kinds.ts'
import { readValue } from '../../config/kinds.ts'
import { Fault } from '../../shared/fault.ts'
import { directoryHeaders, directoryText } from '../../identity/keys/own-directory.ts'
import type { SigningKeys } from '../../identity/keys/signing-key.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { CommandAction, Arguments, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { signingKeysIn } from '../../runtime/signing-key-file.ts'

export const signDirectory: CommandAction = {
  name: 'directory',
  summary: 'Print a key directory, or serve it',
  description: [
    'The public keys of the file, in the form that others fetch from /.well-known/http-message-signatures-directory. With --serve, serves them over HTTP until interrupted, with responses signed for the requested host; a gateway fetches them from there with fetch.allow_private_addresses. The file is read again for each request.',
  ],
  operands: [],
  options: [
    { name: 'key', value: 'FILE', description: 'The keys, as "sign key" makes them' },
    { name: 'serve', value: 'HOST:PORT', description: 'Serve it at this address' },
  ],
  examples: [
    { command: 'sign directory --key agent.jwk', description: 'To publish at the agent’s URL' },
    { command: 'sign directory --key agent.jwk --serve 127.0.0.1:7000', description: 'For tests' },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const file = given.value('key')
  if (file === null) throw new Fault(USAGE, '--key is missing')
  const keys = await signingKeysIn(file)
  const place = given.value('serve')
  if (place === null) {
    io.stdout.write(`${JSON.stringify(JSON.parse(directoryText(keys)), null, 2)}\n`)
    return 0
  }
  await serve(addressIn(place), () => signingKeysIn(file), io)
  return 0
}

function addressIn(text: string): HostPort {
  try {
    return readValue(listenAddress, text)
  } catch (error) {
    throw error instanceof Fault ? new Fault(USAGE, `--serve ${error.message}`) : error
  }
}

async function serve({ host, port }: HostPort, keys: () => Promise<SigningKeys>, io: Io): Promise<void> {
  const server = createServer(async ({ url, method, headers }, response) => {
    const isDirectory = url?.split('?', 1)[0] === DIRECTORY && (method === 'GET' || method === 'HEAD')
    io.stderr.write(`${method} ${url?.slice(0, 200)} ${isDirectory ? 200 : 404}\n`)
    if (!isDirectory) return void response.writeHead(404).end()
    try {
      const current = await keys()
      response.writeHead(200, directoryHeaders(current, headers.host ?? '', Math.floor(Date.now() / 1000)))
      response.end(method === 'GET' ? directoryText(current) : undefined)
    } catch (error) {
      io.stderr.write(`${(error as Error).message}\n`)
      response.writeHead(503).end()
    }
  })
  server.listen(port, host)
  await Promise.race([
    once(server, 'listening'),
    once(server, 'error').then(([error]) => {
      const { code } = error as NodeJS.ErrnoException
      throw new Fault('LISTEN_FAILED', `cannot listen on ${host} port ${port} (${code})`)
    }),
  ])
  const { port: found } = server.address() as AddressInfo
  io.stdout.write(`http://${host.includes(':') ? `[${host}]` : host}:${found}\n`)
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  server.close()
  server.closeAllConnections()
}
