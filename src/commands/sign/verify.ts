import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { listenAddress } from '../../config/network-kinds.ts'
import { readValue } from '../../config/kinds.ts'
import { Fault } from '../../shared/fault.ts'
import { type DocumentRules, readKeySet } from '../../identity/keys/agent-document.ts'
import { isDigestOf, readContentDigest } from '../../identity/signature/content-digest.ts'
import { KeySources } from '../../identity/verify/key-directories.ts'
import { isCovered } from '../../identity/verify/http-signature.ts'
import {
  type Explained,
  explainSignature,
  type FindKeys,
  type Step,
} from '../../identity/verify/signature-steps.ts'
import { USAGE } from '../../terminal/arguments.ts'
import { type CapturedRequest, capturedRequest } from '../record/captured-request.ts'
import type { CommandAction, Arguments, ExitCode } from '../../terminal/command.ts'
import { type Io, paint } from '../../terminal/io.ts'
import { JSON_OPTION } from '../../terminal/json-option.ts'
import { visible } from '../../terminal/table.ts'
import { unreadable } from '../../terminal/unreadable.ts'

export const verify: CommandAction = {
  name: 'verify',
  summary: 'Verify a signed request (Web Bot Auth), and explain each step',
  description: [
    'FILE is the request as sent in HTTP/1, or JSON: {method, url, headers}, as "sign request --as json" prints it; "-" ' +
      'is standard input. With --listen, answers each request that arrives there with its explanation, until interrupted.',
    'Fetches the keys from the directory of the claimed signer, with the same protections as the gateway, or reads them ' +
      'from --directory. Exit code 0: the signature is valid. Does not check what only a gateway knows: whether it serves ' +
      'the host, and whether the signature was used before.',
  ],
  operands: [{ name: 'FILE', description: 'The request', optional: true }],
  options: [
    {
      name: 'url',
      value: 'URL',
      description: 'The server it was sent to, like https://gate.example (default: from the request)',
    },
    {
      name: 'directory',
      value: 'FILE',
      description: 'A key directory to use instead of fetching one',
    },
    {
      name: 'allow-private',
      description: 'Allow directories at private addresses and http://, for tests',
    },
    {
      name: 'at',
      value: 'TIME',
      description: 'Verify as of this time: seconds since 1970, or 2026-11-21T12:00:00Z',
    },
    { name: 'listen', value: 'HOST:PORT', description: 'Listen there for HTTP requests and explain them' },
    { name: 'base', description: 'Also show the signature base' },
    JSON_OPTION,
  ],
  examples: [
    { command: 'verify request.http --url https://gate.example', description: 'A saved request' },
    {
      command:
        'sign request https://a.example/ --key k.jwk --agent https://b.example --as json | gatehouse verify -',
      description: 'A request signed just now',
    },
    { command: 'verify --listen 127.0.0.1:8000 --allow-private', description: 'Requests of an agent' },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const [file, place] = [given.operands[0] ?? null, given.value('listen')]
  if ((file === null) === (place === null)) throw new Fault(USAGE, 'either FILE or --listen')
  const verifier = await Verifier.of(given, io)
  if (place !== null) return listen(place, verifier, io)
  const bytes = file === '-' ? await buffer(io.stdin) : await bytesIn(file!)
  const { text, isProven } = await verifier.explain(capturedRequest(bytes, baseIn(given.value('url'))))
  io.stdout.write(text)
  return isProven ? 0 : 1
}

class Verifier {
  readonly #rules: DocumentRules
  readonly #findKeys: FindKeys
  readonly #atMs: number | null
  readonly #form: { readonly isJson: boolean; readonly hasBase: boolean }
  readonly base: string | null
  readonly #io: Io

  static async of(given: Arguments, io: Io): Promise<Verifier> {
    const rules = { allowPrivate: given.flag('allow-private') }
    const atMs = timeIn(given.value('at'))
    const file = given.value('directory')
    return new Verifier(given, io, rules, file === null ? fetching(rules) : await reading(file), atMs)
  }

  private constructor(
    given: Arguments,
    io: Io,
    rules: DocumentRules,
    findKeys: FindKeys,
    atMs: number | null,
  ) {
    this.#rules = rules
    this.#findKeys = findKeys
    this.#atMs = atMs
    this.#form = { isJson: given.flag('json'), hasBase: given.flag('base') }
    this.#io = io
    this.base = baseIn(given.value('url'))
  }

  async explain(request: CapturedRequest): Promise<{ readonly text: string; readonly isProven: boolean }> {
    const nowMs = this.#atMs ?? Date.now()
    const explained = await explainSignature(request, this.#rules, this.#findKeys, nowMs)
    const body = bodyStep(request, explained)
    const steps = body === null ? explained.steps : [...explained.steps, body]
    const isProven = explained.proven !== null && body?.outcome !== 'failed'
    const { signature, fault } = explained
    const base = signature?.base ?? null
    if (this.#form.isJson) {
      const proven = isProven ? { agent: explained.proven!.agentId, key: explained.proven!.thumbprint } : null
      const outcome = { proven, why: isProven ? null : (fault ?? 'other-body'), steps, base }
      return { text: `${JSON.stringify(outcome, null, 2)}\n`, isProven }
    }
    const lines = steps.map((step) => this.#line(step))
    const shown = this.#form.hasBase && base !== null ? ['', ...base.split('\n').map(visible)] : []
    const end = isProven ? `proven: ${explained.proven!.agentId}` : `not proven: ${fault ?? 'other-body'}`
    return { text: `${[...lines, ...shown, '', visible(end)].join('\n')}\n`, isProven }
  }

  #line({ name, outcome, detail }: Step): string {
    const mark = { ok: 'ok', failed: 'NO', 'not-reached': '-' }[outcome]
    const colour = { ok: 'green', failed: 'red', 'not-reached': 'dim' } as const
    return `${paint(this.#io, colour[outcome], mark.padEnd(3))} ${name.padEnd(10)} ${visible(detail)}`.trimEnd()
  }
}

/** If the signature covers a digest of the body: whether the digest matches. */
function bodyStep({ rawHeaders, body }: CapturedRequest, { signature }: Explained): Step | null {
  if (signature === null || !isCovered(signature, 'content-digest')) return null
  const digests = readContentDigest(rawHeaders)
  const isRight = digests !== null && isDigestOf(digests, body)
  const detail = isRight
    ? `${body.length} bytes, as Content-Digest says`
    : 'it is not what Content-Digest says'
  return { name: 'body', outcome: isRight ? 'ok' : 'failed', detail }
}

function fetching(rules: DocumentRules): FindKeys {
  const sources = new KeySources({ ...rules, nowMs: Date.now })
  return async (agentId) => {
    const { keys, untilMs, url: from } = (await sources.find(agentId, null)).document
    return { keys, from: untilMs === null ? from : `${from}, signed by its host` }
  }
}

async function reading(file: string): Promise<FindKeys> {
  const bytes = await bytesIn(file)
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    throw new Fault('DIRECTORY_UNREADABLE', `${file} is not valid JSON`)
  }
  // The caller supplies the keys, so keys from specifications are allowed.
  const keys = readKeySet(value, { allowPrivate: true })
  return async () => ({ keys, from: file })
}

async function bytesIn(file: string): Promise<Buffer> {
  return readFile(file).catch((error) => {
    throw new Fault('FILE_UNREADABLE', `${file}: ${unreadable(error).message}`)
  })
}

function baseIn(text: string | null): string | null {
  if (text === null) return null
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new Fault(USAGE, '--url must be http:// or https://')
  return url.origin
}

function timeIn(text: string | null): number | null {
  if (text === null) return null
  const ms = /^\d{1,12}$/.test(text) ? Number(text) * 1_000 : TIME.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms)) throw new Fault(USAGE, '--at must be seconds since 1970, or 2026-11-21T12:00:00Z')
  return ms
}

async function listen(place: string, verifier: Verifier, io: Io): Promise<ExitCode> {
  const { host, port } = addressIn(place)
  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX }, async (request, response) => {
    try {
      const { text, isProven } = await verifier.explain(await received(request, verifier.base))
      io.stdout.write(`${visible(`${request.method} ${request.url}`)}\n${text}\n`)
      response.writeHead(isProven ? 200 : 401, { 'Content-Type': 'text/plain; charset=utf-8' }).end(text)
    } catch (error) {
      if (!(error instanceof Fault)) io.stderr.write(`${(error as Error).message}\n`)
      response.writeHead(400).end(`${(error as Error).message}\n`)
    }
  })
  server.listen(port, host)
  await Promise.race([
    once(server, 'listening'),
    once(server, 'error').then(([error]) => {
      throw new Fault('LISTEN_FAILED', `cannot listen on ${place} (${(error as NodeJS.ErrnoException).code})`)
    }),
  ])
  const { port: found } = server.address() as AddressInfo
  io.stderr.write(`http://${host.includes(':') ? `[${host}]` : host}:${found}\n`)
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  server.close()
  server.closeAllConnections()
  return 0
}

function addressIn(place: string) {
  try {
    return readValue(listenAddress, place)
  } catch (error) {
    throw error instanceof Fault ? new Fault(USAGE, `--listen ${error.message}`) : error
  }
}

async function received(request: IncomingMessage, base: string | null): Promise<CapturedRequest> {
  const { method = '', url = '', rawHeaders, headers } = request
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length
    if (length > BODY_BYTES_MAX) throw new Fault('BODY_TOO_LARGE', `a body may have ${BODY_BYTES_MAX} bytes`)
    pieces.push(piece)
  }
  return {
    method,
    target: url,
    rawHeaders,
    body: Buffer.concat(pieces),
    base: base ?? `http://${headers.host ?? ''}`,
  }
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/
const HEADER_BYTES_MAX = 65_536
const BODY_BYTES_MAX = 16 * 1_048_576
