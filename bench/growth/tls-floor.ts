import { readFileSync } from 'node:fs'
import tls, { type TLSSocket } from 'node:tls'

/** `node tls-floor.ts PORT CERTIFICATE KEY`: a server of node:tls that answers each request with the same bytes. */
const [port, cert, key] = process.argv.slice(2) as [string, string, string]
// SETTINGS, HEADERS with status 200, and DATA of two bytes that ends stream 1.
const H2 = Buffer.from('000000040000000000' + '00000101040000000188' + '0000020001000000016f6b', 'hex')
const H1 = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')

const options = {
  cert: readFileSync(cert),
  key: readFileSync(key),
  ALPNProtocols: ['h2', 'http/1.1'],
  noDelay: true,
}
tls
  .createServer(options, (socket) => socket.once('data', answer).on('error', ignore))
  .listen(Number(port), '127.0.0.1')

function answer(this: TLSSocket): void {
  this.write(this.alpnProtocol === 'h2' ? H2 : H1)
  this.resume()
}

function ignore(): void {}
