import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { framingVector, ja4hOf, ja4Of, ja4sOf, ja4xOf } from './derive.ts'
import { dissectRequest, rawCertificate, rawClientHellos, rawServerHellos } from './dissect.ts'
import { records } from './hello-builder.ts'
import {
  type CommandLine,
  relayDatagrams,
  relayStream,
  type Sent,
  type Server,
  startServer,
} from './relay.ts'
import type { Rule } from './rules.ts'
import type { FramingVector, Ja4hVector, Ja4sVector, Ja4Vector, Ja4xVector, Vectors } from './vector.ts'

/**
 * Runs the programs that are installed here against each other and keeps what they said. They are told that they
 * speak to example.test, so nothing of this machine gets into a vector.
 */
export async function recordVectors(): Promise<Vectors> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  process.chdir(folder) // file names in commands are then short, and the same everywhere
  const servers = new Servers()
  try {
    const certificates = new Map(CERTIFICATES.map((made) => [made.name, makeCertificate(made)]))
    const hellos: Hellos[] = []
    for (const session of SESSIONS) hellos.push(await recordHellos(session, servers))
    const framing: FramingVector[] = []
    for (const conversation of CONVERSATIONS)
      framing.push(await recordConversation(conversation, servers, certificates))
    const ja4h: Ja4hVector[] = []
    for (const request of REQUESTS) ja4h.push(await recordRequest(request))
    return {
      ja4: hellos.flatMap((hello) => hello.ja4),
      ja4s: hellos.flatMap((hello) => hello.ja4s),
      ja4h,
      ja4x: [...certificates.values()],
      framing,
    }
  } finally {
    servers.stop()
    await rm(folder, { recursive: true })
  }
}

/** A client and what it says about itself. */
interface Program {
  /** Its version, and what was asked of it. */
  readonly source: string
  readonly client: CommandLine
}

/** A client that speaks to `openssl s_server`, both with further options. */
interface Session extends Program {
  readonly server?: string
  readonly dtls?: true
}

/** One that is kept whole. */
interface Conversation extends Session {
  readonly rule: Rule
  /** The certificates that each side shows where everyone can read them. */
  readonly shown: { readonly server?: string; readonly client?: string }
}

/** A client that makes one request, unencrypted. */
interface Request extends Program {
  readonly http2?: true
}

interface Certificate {
  readonly name: string
  readonly rule: Rule
  /** Of `openssl req`. */
  readonly argv: CommandLine
}

const OPENSSL = versionOf('openssl', 'version', /OpenSSL [\d.]+/)
const CURL = versionOf('curl', '--version', /curl [\d.]+/)
const PYTHON = versionOf('python3', '--version', /Python [\d.]+/)
const WGET = versionOf('wget', '--version', /Wget [\d.]+/)
const NODE = `Node.js ${process.versions.node}`

const SESSIONS: readonly Session[] = [
  openssl(''),
  { ...openssl('-tls1_3 -alpn h2,http/1.1'), server: '-alpn h2,http/1.1' },
  openssl('-tls1_2'),
  openssl('-tls1_2 -no_ticket'),
  { ...openssl('-tls1_2 -alpn http/1.1'), server: '-alpn h2,http/1.1' },
  { ...openssl('-tls1_1 -cipher ALL:@SECLEVEL=0'), server: '-cipher ALL:@SECLEVEL=0' },
  { ...openssl('-tls1 -cipher ALL:@SECLEVEL=0'), server: '-cipher ALL:@SECLEVEL=0' },
  openssl('-cipher ECDHE+AESGCM -ciphersuites TLS_AES_128_GCM_SHA256'),
  openssl('-sigalgs RSA-PSS+SHA256:ECDSA+SHA256:RSA+SHA256'),
  openssl('-groups P-521:X448'),
  openssl('-noservername'),
  openssl('-tls1_3 -sess_out session.pem'),
  openssl('-tls1_3 -sess_in session.pem'),
  { ...openssl('-dtls1_2'), server: '-dtls', dtls: true },
  { ...openssl('-dtls1 -cipher ALL:@SECLEVEL=0'), server: '-dtls -cipher ALL:@SECLEVEL=0', dtls: true },
  node('tls.connect', "require('tls').connect($PORT, { servername: 'example.test' })"),
  node('https.get', "require('https').get('https://example.test:$PORT/')"),
  node('fetch', "fetch('https://example.test:$PORT/')"),
  node('http2.connect', "require('http2').connect('https://example.test:$PORT')"),
  curl('-k --http1.1 https://example.test/'),
  curl('-k --http2 https://example.test/'),
  curl('-k --tls-max 1.2 https://192.0.2.1/'),
  python('HTTPSConnection("example.test", context=ssl._create_unverified_context()).connect()'),
  wget('--no-check-certificate https://127.0.0.1:$PORT/'),
]

const CONVERSATIONS: readonly Conversation[] = [
  { ...openssl('-tls1_3 -groups X25519:P-256'), server: '-groups P-256', rule: 'ja4.9', shown: {} },
  {
    ...openssl('-tls1_2 -cert multi.pem -key multi.key'),
    server: '-Verify 1',
    rule: 'ja4x.chain',
    shown: { server: 'server', client: 'multi' },
  },
  { ...openssl('-dtls1_2'), server: '-dtls -listen', dtls: true, rule: 'ja4.9', shown: { server: 'server' } },
  {
    ...openssl('-dtls1_2 -mtu 256 -alpn one.example.test,two.example.test'),
    server: '-dtls -mtu 256',
    dtls: true,
    rule: 'framing.dtls',
    shown: { server: 'server' },
  },
]

const REQUESTS: readonly Request[] = [
  curl('http://example.test/'),
  curl('-0 http://example.test/'),
  curl('-I -e http://example.test/ -b b=2;a=1 http://example.test/'),
  curl('-X DELETE -H Accept-Language:de-CH,de;q=0.9 http://example.test/'),
  { ...curl('--http2-prior-knowledge http://example.test/'), http2: true },
  { ...curl('--http2-prior-knowledge -b b=2;a=1 -d x=1 http://example.test/'), http2: true },
  node('fetch', "fetch('http://example.test:$PORT/')"),
  node('fetch with a body', "fetch('http://example.test:$PORT/', { method: 'POST', body: '{}' })"),
  node(
    'http.get',
    "require('http').get('http://example.test:$PORT/', { headers: { cookie: ['b=2', 'a=1'] } })",
  ),
  {
    ...node(
      'http2.connect',
      "require('http2').connect('http://example.test:$PORT').request({ cookie: ['b=2', 'a=1'], 'accept-language': 'en-GB' })",
    ),
    http2: true,
  },
  python('HTTPConnection("example.test").request("PUT", "/", "x")'),
  python('urllib.request.urlopen("http://example.test/")'),
  wget('--header=Host:example.test http://127.0.0.1:$PORT/'),
]

const CERTIFICATES: readonly Certificate[] = [
  {
    name: 'server',
    rule: 'ja4x.parts',
    argv: ['-x509', '-subj', '/C=CH/O=Example/CN=example.test', '-addext', 'subjectAltName=DNS:example.test'],
  },
  {
    name: 'multi',
    rule: 'ja4x.set',
    argv: ['-x509', '-subj', '/C=CH/CN=example.test+OU=One+UID=two/O=Example'],
  },
  {
    name: 'large-arcs',
    rule: 'ja4x.octets',
    argv: ['-x509', '-subj', '/large=x/CN=example.test', '-addext', '2.999.4=DER:0500'],
  },
  {
    name: 'empty-subject',
    rule: 'ja4x.empty',
    argv: ['-x509', '-subj', '/', '-addext', 'subjectAltName=critical,DNS:example.test'],
  },
  { name: 'version-1', rule: 'ja4x.empty', argv: ['-subj', '/CN=example.test'] },
]

/** Without the extensions that the system's own would add. */
const REQUEST_CONFIG = 'oid_section = oids\n[oids]\nlarge = 2.999.3\n[req]\ndistinguished_name = dn\n[dn]\n'

function openssl(options: string): Program {
  const argv = options.split(' ').filter((word) => word !== '')
  const name = argv.includes('-noservername') ? [] : ['-servername', 'example.test']
  return {
    source: `recorded from ${OPENSSL} s_client ${options}`.trimEnd(),
    client: ['openssl', 's_client', '-connect', '127.0.0.1:$PORT', ...name, ...argv],
  }
}

function curl(options: string): Program {
  return {
    source: `recorded from ${CURL} ${options}`,
    client: ['curl', '-s', '--connect-to', '::127.0.0.1:$PORT', ...options.split(' ')],
  }
}

function wget(options: string): Program {
  return { source: `recorded from ${WGET}`, client: ['wget', '-q', '-O', '-', ...options.split(' ')] }
}

function node(name: string, script: string): Program {
  const found = "[{ address: '127.0.0.1', family: 4 }]"
  const lookup = `require('dns').lookup = (name, options, callback) => callback(null, ${found})`
  return { source: `recorded from ${NODE} ${name}`, client: [process.execPath, '-e', `${lookup}; ${script}`] }
}

function python(script: string): Program {
  const imports = 'import socket, ssl, urllib.request; from http.client import *'
  const connect = 'connect = socket.create_connection'
  const lookup = 'socket.create_connection = lambda *a, **k: connect(("127.0.0.1", $PORT))'
  return {
    source: `recorded from ${PYTHON} ${script}`,
    client: ['python3', '-c', [imports, connect, lookup, script].join('\n')],
  }
}

function versionOf(program: string, option: string, version: RegExp): string {
  return version.exec(execFileSync(program, [option], { encoding: 'utf8' }))![0]
}

function makeCertificate({ name, rule, argv }: Certificate): Ja4xVector {
  writeFileSync('req.cnf', REQUEST_CONFIG)
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`]
  openSsl(['req', '-config', 'req.cnf', '-new', ...key, '-out', `${name}.pem`, ...argv])
  if (!argv.includes('-x509'))
    openSsl(['x509', '-req', '-in', `${name}.pem`, '-signkey', `${name}.key`, '-out', `${name}.pem`])
  const der = openSsl(['x509', '-in', `${name}.pem`, '-outform', 'DER'])
  const raw = rawCertificate(der)
  const source = `made by ${OPENSSL} req ${argv.join(' ')}`
  return {
    name: `openssl: ${name}`,
    rule,
    source,
    der_hex: der.toString('hex'),
    ja4x: ja4xOf(raw),
    ja4x_r: raw,
  }
}

function openSsl(argv: readonly string[]): Buffer {
  return execFileSync('openssl', argv, { stdio: ['ignore', 'pipe', 'ignore'] })
}

type Hellos = Pick<Vectors, 'ja4' | 'ja4s'>

async function recordHellos(session: Session, servers: Servers): Promise<Hellos> {
  const transport: 'tcp' | 'dtls' = session.dtls ? 'dtls' : 'tcp'
  const sent = await record(session, servers)
  const cited = (index: number, rule: Rule) => ({
    name: `${session.source.replace('recorded from ', '')}: ${index + 1}`,
    rule,
    source: session.source,
    transport,
    handshake_hex: messageIn(sent[index]![1], transport).toString('hex'),
  })
  const clients = rawClientHellos(packetsOf(sent, transport), transport)
  const answers = rawServerHellos(packetsOf(sent, transport), transport)
  return {
    ja4: clients.flatMap((raw, index): Ja4Vector[] => {
      if (raw === null) return []
      const { r, ro } = raw
      return [{ ...cited(index, 'ja4.7.list'), ja4: ja4Of(r), ja4_r: r, ja4_o: ja4Of(ro), ja4_ro: ro }]
    }),
    ja4s: answers.flatMap((raw, index): Ja4sVector[] =>
      raw === null ? [] : [{ ...cited(index, 'ja4s.order'), ja4s: ja4sOf(raw), ja4s_r: raw }],
    ),
  }
}

async function recordConversation(
  conversation: Conversation,
  servers: Servers,
  certificates: ReadonlyMap<string, Ja4xVector>,
): Promise<FramingVector> {
  const { source, rule, shown, dtls } = conversation
  const transport = dtls ? 'dtls' : 'tcp'
  const sent = await record(conversation, servers)
  const clients = rawClientHellos(packetsOf(sent, transport), transport).filter((raw) => raw !== null)
  const answers = rawServerHellos(packetsOf(sent, transport), transport).filter((raw) => raw !== null)
  const chain = (name?: string) => (name === undefined ? [] : [certificates.get(name)!.ja4x_r])
  return framingVector(
    {
      kind: 'handshake',
      name: source.replace('recorded from ', ''),
      rule,
      transport,
      flights: sent,
      said: {
        ja4: clients[0]!.r,
        later: clients.slice(1).map((raw) => raw.r),
        ja4s: answers[0]!,
        ja4sLater: answers.slice(1),
        retried: answers.length > 1,
        ja4x: chain(shown.server),
        ja4xClient: chain(shown.client),
      },
    },
    source,
  )
}

/** What can be read of a session: messages for TLS, datagrams for DTLS. */
async function record({ client, server = '', dtls }: Session, servers: Servers): Promise<Sent> {
  const port = await servers.port(server)
  return dtls
    ? plainDatagrams(await relayDatagrams(client, port))
    : handshakeMessages(await relayStream(client, port))
}

/** The messages that fingerprints are made of, out of records that are not encrypted. */
function handshakeMessages(sent: Sent): Sent {
  const messages: (readonly [from: 'client' | 'server', bytes: Buffer])[] = []
  const streams = { client: Buffer.alloc(0), server: Buffer.alloc(0) }
  for (const [from, bytes] of sent) {
    let stream = Buffer.concat([streams[from], bytes])
    while (stream.length >= 5 && stream.length >= 5 + stream.readUInt16BE(3)) {
      const record = stream.subarray(0, 5 + stream.readUInt16BE(3))
      stream = stream.subarray(record.length)
      for (let rest = record.subarray(5); record[0] === 22 && rest.length >= 4; ) {
        const message = rest.subarray(0, 4 + rest.readUIntBE(1, 3))
        if (![1, 2, 11].includes(message[0]!)) break // or another one, or encrypted
        messages.push([from, message])
        rest = rest.subarray(message.length)
      }
    }
    streams[from] = stream
  }
  return messages
}

/** Up to the first ChangeCipherSpec. */
function plainDatagrams(sent: Sent): Sent {
  const end = sent.findIndex(([, bytes]) => bytes.includes(Buffer.from('14fefd0000', 'hex')))
  return end === -1 ? sent : sent.slice(0, end)
}

function packetsOf(sent: Sent, transport: 'tcp' | 'dtls'): Buffer[] {
  return transport === 'dtls' ? sent.map(([, bytes]) => bytes) : records(sent.map(([, bytes]) => bytes))
}

/** For DTLS, the content of the datagram's first record. */
function messageIn(bytes: Buffer, transport: 'tcp' | 'dtls'): Buffer {
  return transport === 'dtls' ? bytes.subarray(13, 13 + bytes.readUInt16BE(11)) : bytes
}

async function recordRequest({ source, client, http2: isHttp2 }: Request): Promise<Ja4hVector> {
  const server = isHttp2 ? http2.createServer() : http.createServer()
  server.on('request', (_, response: { end(): void }) => response.end())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sent = await relayStream(client, (server.address() as AddressInfo).port)
  server.close()
  const bytes = Buffer.concat(sent.filter(([from]) => from === 'client').map(([, chunk]) => chunk))
  const { r, ...dissected } = dissectRequest(bytes, isHttp2 === true)
  const headers = dissected.headers.map(
    ([name, value]) => [name, value.replace(/(example.test):\d+/, '$1')] as const,
  )
  const name = source.replace('recorded from ', '')
  return { name, rule: 'ja4h.names', source, ...dissected, headers, ja4h: ja4hOf(r), ja4h_r: r.join('_') }
}

/** One server for each set of options, so that a session can be resumed where it was begun. */
class Servers {
  readonly #running = new Map<string, Server>()

  async port(options: string): Promise<number> {
    const argv = options.split(' ').filter((word) => word !== '')
    const listen = argv.includes('-dtls') ? [] : ['-www']
    const server =
      this.#running.get(options) ??
      (await startServer(['-cert', 'server.pem', '-key', 'server.key', ...listen, ...argv]))
    this.#running.set(options, server)
    return server.port
  }

  stop(): void {
    for (const { process } of this.#running.values()) process.kill()
  }
}
