import { once } from 'node:events'
import { Fault } from '../shared/fault.ts'
import { ja4Forms } from '../fingerprint/ja4.ts'
import { ja4h, ja4hRaw } from '../fingerprint/ja4plus/ja4h.ts'
import { ja4s, ja4sRaw } from '../fingerprint/ja4plus/ja4s.ts'
import { ja4x, ja4xRaw } from '../fingerprint/ja4plus/ja4x.ts'
import { stableKey } from '../fingerprint/stable-key.ts'
import { CLIENT_HELLO, parseClientHello, parseDtlsClientHello, type Transport } from '../wire/client-hello.ts'
import { HelloReader } from '../wire/record.ts'
import type { HttpVersion, RequestHead } from '../wire/request-head.ts'
import { parseDtlsServerHello, parseServerHello, SERVER_HELLO } from '../wire/server-hello.ts'
import { parseCertificate } from '../wire/x509.ts'
import type { CommandAction, Command, ExitCode } from '../terminal/command.ts'
import type { Io } from '../terminal/io.ts'
import { ja4plusFrom } from '../runtime/ja4plus-setting.ts'
import { type Line, lines } from '../terminal/lines.ts'

export const fingerprint: Command = {
  name: 'fingerprint',
  summary: 'Compute fingerprints of hellos, certificates and requests given as JSON lines',
  description: [
    'Reads one JSON object a line from standard input and prints one JSON object for each, in the same order. For an ' +
      'invalid line it prints {"error", "detail"} and continues; the exit code is then 1.',
  ],
  subcommands: [
    {
      name: 'ja4',
      summary: 'Fingerprint TLS ClientHellos',
      description: [
        'Takes {"handshake_hex", "transport"}, one whole handshake message (DTLS: with its 12-byte header), or ' +
          '{"stream_hex": [...]}, TCP segments as they arrived. Transport is tcp (the default), quic or dtls.',
        'Answers {"ja4", "ja4_r", "ja4_o", "ja4_ro", "ja4_stable"}.',
      ],
      operands: [],
      options: [],
      examples: [{ command: 'fingerprint ja4 < hellos.jsonl', description: 'The JA4 of each hello' }],
      run: (_, io) => answerLines(io, ja4Answer),
    },
    ja4plus({
      name: 'ja4s',
      summary: 'Fingerprint TLS ServerHellos',
      description: ['Takes the same input as "ja4", from the server. Answers {"ja4s", "ja4s_r"}.'],
      answer: ja4sAnswer,
    }),
    ja4plus({
      name: 'ja4x',
      summary: 'Fingerprint X.509 certificates',
      description: ['Takes {"der_hex"}. Answers {"ja4x", "ja4x_r"}.'],
      answer: ja4xAnswer,
    }),
    ja4plus({
      name: 'ja4h',
      summary: 'Fingerprint HTTP requests',
      description: [
        'Takes {"method", "version", "headers": [[name, value], ...]}, headers in the order sent and version 10, ' +
          '11, 20 or 30. Answers {"ja4h", "ja4h_r"}.',
      ],
      answer: ja4hAnswer,
    }),
  ],
}

type FingerprintAnswer = (input: Readonly<Record<string, unknown>>) => object

/** JA4+ has its own licence, so one setting disables it. */
function ja4plus(
  named: Pick<CommandAction, 'name' | 'summary'> & { description: string[]; answer: FingerprintAnswer },
): CommandAction {
  const { name, summary, description, answer } = named
  return {
    name,
    summary,
    description,
    operands: [],
    options: [],
    examples: [
      { command: `fingerprint ${name} < input.jsonl`, description: `The ${name.toUpperCase()} of each line` },
    ],
    run: async (_, io) => {
      if (!ja4plusFrom(io.env)) throw new Fault('JA4PLUS_OFF', 'turned off by GATEHOUSE_FINGERPRINTS_JA4PLUS')
      return answerLines(io, answer)
    },
  }
}

async function answerLines(io: Io, answer: FingerprintAnswer): Promise<ExitCode> {
  let exitCode: ExitCode = 0
  for await (const batch of lines(io.stdin, LINE_BYTES_MAX)) {
    let text = ''
    for (const line of batch) {
      if (line.text?.trim() === '') continue
      const answered = answerTo(line, answer)
      if ('error' in answered) exitCode = 1
      text += `${JSON.stringify(answered)}\n`
    }
    if (!io.stdout.write(text)) await once(io.stdout, 'drain')
  }
  return exitCode
}

function answerTo(line: Line, answer: FingerprintAnswer): object {
  try {
    if (line.text === null) throw new InputFault('line-too-long', `more than ${LINE_BYTES_MAX} bytes`)
    return answer(parseObject(line.text))
  } catch (error) {
    if (!(error instanceof InputFault)) throw error
    return { error: error.code, detail: error.message }
  }
}

function ja4Answer(input: Readonly<Record<string, unknown>>): object {
  const transport = parseTransport(input)
  const message = messageOf(input, transport, CLIENT_HELLO)
  const read = transport === 'dtls' ? parseDtlsClientHello(message) : parseClientHello(message)
  if (read.kind === 'malformed') throw new InputFault(read.fault, 'not a ClientHello that can be read')
  return { ...ja4Forms(read.hello, transport), ja4_stable: stableKey(read.hello, transport) }
}

function ja4sAnswer(input: Readonly<Record<string, unknown>>): object {
  const transport = parseTransport(input)
  const message = messageOf(input, transport, SERVER_HELLO)
  const read = transport === 'dtls' ? parseDtlsServerHello(message) : parseServerHello(message)
  if (read.kind === 'malformed') throw new InputFault(read.fault, 'not a ServerHello that can be read')
  return { ja4s: ja4s(read.hello, transport), ja4s_r: ja4sRaw(read.hello, transport) }
}

function ja4xAnswer(input: Readonly<Record<string, unknown>>): object {
  const read = parseCertificate(parseHex(input, 'der_hex'))
  if (read.kind === 'malformed') throw new InputFault(read.fault, 'not a certificate that can be read')
  return { ja4x: ja4x(read.oids), ja4x_r: ja4xRaw(read.oids) }
}

function ja4hAnswer(input: Readonly<Record<string, unknown>>): object {
  const head = parseHead(input)
  return { ja4h: ja4h(head), ja4h_r: Buffer.from(ja4hRaw(head), 'latin1').toString('utf8') }
}

/** The given handshake message, or the first one of the given stream. */
function messageOf(input: Readonly<Record<string, unknown>>, transport: Transport, type: number): Uint8Array {
  if (input['handshake_hex'] !== undefined) return parseHex(input, 'handshake_hex')
  const stream = input['stream_hex']
  if (stream === undefined) throw new InputFault('invalid-input', 'needs "handshake_hex" or "stream_hex"')
  if (transport !== 'tcp') throw new InputFault('invalid-input', '"stream_hex" is for transport tcp')
  if (!Array.isArray(stream)) throw new InputFault('invalid-input', '"stream_hex" is not an array')

  const reader = new HelloReader(type)
  for (const [index, segment] of stream.entries()) {
    const read = reader.push(hexBytes(segment, `stream_hex[${index}]`))
    if (read.kind === 'fault') throw new InputFault(read.fault, `in stream_hex[${index}]`)
    if (read.kind === 'message') return read.message
  }
  throw new InputFault('truncated', 'the stream ends before its first handshake message does')
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new InputFault('not-json', (error as Error).message)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new InputFault('invalid-input', 'not a JSON object')
  return value as Readonly<Record<string, unknown>>
}

function parseTransport(input: Readonly<Record<string, unknown>>): Transport {
  const transport = input['transport'] ?? 'tcp'
  if (transport === 'tcp' || transport === 'quic' || transport === 'dtls') return transport
  throw new InputFault('invalid-input', '"transport" must be one of tcp, quic, dtls')
}

function parseHex(input: Readonly<Record<string, unknown>>, name: string): Buffer {
  return hexBytes(input[name], name)
}

function hexBytes(value: unknown, name: string): Buffer {
  if (typeof value !== 'string') throw new InputFault('invalid-input', `"${name}" is not a string`)
  if (value.length % 2 === 1 || !HEX.test(value))
    throw new InputFault('invalid-hex', `"${name}" is not hex bytes`)
  return Buffer.from(value, 'hex')
}

function parseHead(input: Readonly<Record<string, unknown>>): RequestHead {
  const { method, version, headers } = input
  if (typeof method !== 'string') throw new InputFault('invalid-input', '"method" is not a string')
  if (typeof version !== 'string' || !VERSIONS.has(version))
    throw new InputFault('invalid-input', '"version" must be one of "10", "11", "20", "30"')
  if (!Array.isArray(headers)) throw new InputFault('invalid-input', '"headers" is not an array')
  const rawHeaders: string[] = []
  for (const [index, header] of headers.entries()) {
    const [name, value, ...more] = Array.isArray(header) ? header : []
    if (typeof name !== 'string' || typeof value !== 'string' || more.length > 0)
      throw new InputFault('invalid-input', `"headers[${index}]" is not [name, value]`)
    rawHeaders.push(asSent(name), asSent(value))
  }
  return { method: asSent(method), target: '', version: version as HttpVersion, rawHeaders }
}

/** Text as its UTF-8 bytes, one character each, as it comes from a socket. */
function asSent(text: string): string {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text, 'utf8').toString('latin1')
}

/** A problem of one line: the next line may be valid. */
class InputFault extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

const HEX = /^[0-9a-f]*$/i
const VERSIONS: ReadonlySet<string> = new Set(['10', '11', '20', '30'])
/** The largest hello takes 128 KiB in hex; a certificate may be larger. */
const LINE_BYTES_MAX = 16 * 1024 * 1024
