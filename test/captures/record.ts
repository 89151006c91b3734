import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import http2 from 'node:http2'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Records sample.pcapng, the capture that the manual analyses: curl and Node talking TLS 1.2 and 1.3 to a server on
 * loopback, with the keys in the file. Needs tcpdump, editcap, openssl and curl, and the right to capture.
 */
const folder = await mkdtemp(join(tmpdir(), 'sample-'))
const [key, certificate, keys, packets] = ['key.pem', 'cert.pem', 'keys.log', 'packets.pcap'].map((name) =>
  join(folder, name),
) as [string, string, string, string]
const subject = [
  '-subj',
  '/C=XX/O=Example/CN=shop.example.test',
  '-addext',
  'subjectAltName=DNS:shop.example.test',
]
const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256']
await run('openssl', [
  'req',
  '-x509',
  ...curve,
  '-nodes',
  '-days',
  '3650',
  '-keyout',
  key,
  '-out',
  certificate,
  ...subject,
])

const tls = { key: await readFile(key), cert: await readFile(certificate) }
const server = http2.createSecureServer({ ...tls, allowHTTP1: true }, (_, response) =>
  response.end('hello\n'),
)
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const tcpdump = spawn('tcpdump', ['-i', 'lo', '-U', '-w', packets, `tcp port ${port}`], {
  stdio: ['ignore', 'ignore', 'pipe'],
})
await once(tcpdump.stderr, 'data')
await sleep(500)

const url = `https://shop.example.test:${port}/cart?id=7`
const curl = [
  '-sk',
  '-o',
  '/dev/null',
  '--resolve',
  `shop.example.test:${port}:127.0.0.1`,
  '-b',
  'session=1; theme=dark',
]
const env = { ...process.env, SSLKEYLOGFILE: keys }
await run('curl', [...curl, '--http1.1', '--tls-max', '1.2', url], env)
await run('curl', [...curl, '--http2', '-A', 'curl', url], env)
await get({
  host: '127.0.0.1',
  port,
  servername: 'shop.example.test',
  path: '/products',
  rejectUnauthorized: false,
})
await sleep(500)
tcpdump.kill('SIGINT')
await once(tcpdump, 'exit')
server.close()

const sample = new URL('./sample.pcapng', import.meta.url).pathname
await run('editcap', ['--discard-capture-comment', '--inject-secrets', `tls,${keys}`, packets, sample])
await rm(folder, { recursive: true, force: true })

async function get(options: https.RequestOptions): Promise<void> {
  const request = https.get({ ...options, agent: false })
  let lines = ''
  request.on('socket', (socket) => socket.on('keylog', (line: Buffer) => (lines += line)))
  const [response] = await once(request, 'response')
  response.resume()
  await once(response, 'end')
  await writeFile(keys, lines, { flag: 'a' })
}

async function run(program: string, args: readonly string[], programEnv = process.env): Promise<void> {
  const child = spawn(program, args, { stdio: 'ignore', env: programEnv })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`${program} ended with ${code}`)
}
