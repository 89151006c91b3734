import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { KNOWN_LABELS } from '../../classify/known/corpus.ts'
import type { ConfigFlags } from '../../config/layers.ts'
import { Fault } from '../../shared/fault.ts'
import { createLog, type Log } from '../../shared/log.ts'
import { LocalManageBus } from '../../plane/local-bus.ts'
import { makeSnapshot } from '../../plane/snapshot.ts'
import { SingleWorker } from '../../proxy/worker/single-worker.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { Arguments, Command } from '../../terminal/command.ts'
import { CONFIG_OPTIONS } from '../../terminal/config-options.ts'
import type { GatewaySettings } from '../../runtime/gateway/gateway-settings.ts'
import type { Io } from '../../terminal/io.ts'
import { CertificatePart } from '../../runtime/live-parts.ts'
import { startRecordSite } from './record-site.ts'
import { Recording } from './recording.ts'
import { startupFrom } from '../../runtime/startup.ts'

export const record: Command = {
  name: 'record',
  summary: 'Record the connections of clients, for signatures and labelled data',
  description: [
    'Takes the place of the gateway and appends one line of JSON to FILE at the end of each connection: the raw TLS hello, the negotiated parameters, the opening of HTTP/2, and the headers of each request in the order and case in which they were sent. Never writes bodies.',
    'Removes credentials before writing: values of Authorization, cookies and API keys, and anything that looks like a token. The names of cookies, the scheme of Authorization, and the names in a query are kept.',
    'Without --upstream a small site answers: pages with links and a form, a JSON API, a chat completion, and MCP at /mcp. Ctrl-C ends the recording and finishes the file.',
  ],
  operands: [],
  options: [
    { name: 'out', value: 'FILE', description: 'The file to append to; required' },
    { name: 'client', value: 'NAME', description: 'The client that is recorded', default: 'unknown' },
    { name: 'client-version', value: 'VERSION', description: 'The version of the client' },
    {
      name: 'label',
      value: 'LABEL',
      description: `What kind it is: ${KNOWN_LABELS.join(', ')}, or your own`,
      default: 'unknown',
    },
    { name: 'situation', value: 'TEXT', description: 'What the client does, like "first visit"' },
    { name: 'requests', value: 'N', description: 'Stop after this many requests' },
    { name: 'seconds', value: 'N', description: 'Stop after this many seconds' },
    { name: 'keep-queries', description: 'Also write the values in queries' },
    { name: 'listen', value: 'HOST:PORT', description: 'Where clients connect', default: '127.0.0.1:8443' },
    ...CONFIG_OPTIONS.filter(({ name }) => ['upstream', 'data', 'cert', 'key'].includes(name)),
  ],
  examples: [
    {
      command: 'record --out curl.jsonl --client curl --label http-library --requests 1',
      description: 'One request of curl from another terminal',
    },
    {
      command: 'record --out app.jsonl --upstream http://localhost:3000 --seconds 600',
      description: 'Ten minutes of an app’s traffic',
    },
  ],
  run: async (given, io) => {
    const file = given.value('out')
    if (file === null) throw new Fault(USAGE, '--out is missing: the file to add lines to')
    const limits = { requests: countOf(given, 'requests'), seconds: countOf(given, 'seconds') }
    const site = given.value('upstream') === null ? await startRecordSite() : null
    try {
      const flags = { ...flagsOf(given), ...(site !== null && { upstream: [site.url] }) }
      const { settings } = await startupFrom(flags, null, io, 'proxy', 1)
      const recording = new Recording(clientOf(given), given.flag('keep-queries'), await openFile(file))
      await recordUntilStopped(settings, recording, limits, io)
      io.stdout.write(`${recording.connections} connections, ${recording.requests} requests in ${file}\n`)
      return 0
    } finally {
      site?.close()
    }
  },
}

interface Limits {
  readonly requests: number | null
  readonly seconds: number | null
}

async function recordUntilStopped(
  settings: GatewaySettings,
  recording: Recording,
  limits: Limits,
  io: Io,
): Promise<void> {
  const log = createLog({ level: 'warn', perSecond: null, format: 'auto' })
  const bus = new LocalManageBus()
  const worker = new SingleWorker({ ...settings.worker, plainListen: null }, bus, log, null, recording)
  bus.publish(makeSnapshot(1, PASS_ALL, Date.now()))
  const stop = new RecordingEnd(recording, limits)
  try {
    await startWorker(worker, settings, log, io)
    await Promise.race([stop.reached, recording.failed])
  } finally {
    stop.close()
    await worker.drain(DRAIN_MS)
    bus.close()
    await recording.finish()
    log.flush()
  }
}

async function startWorker(worker: SingleWorker, settings: GatewaySettings, log: Log, io: Io): Promise<void> {
  const certificates = new CertificatePart(
    'certificates',
    settings.certificates,
    settings.dataFolder,
    log,
    () => undefined,
  )
  const keyPairs = await certificates.load()
  const { listen } = await worker.start({
    keyPairs,
    ticketKeys: randomBytes(TICKET_KEY_BYTES),
    signingKey: null,
  })
  const ca = certificates.development?.caFile
  io.stdout.write(`recording at https://${listen.host}:${listen.port}`)
  io.stdout.write(ca === undefined ? '\n' : ` (CA of its certificate: ${ca})\n`)
}

/**
 * Ends the recording after enough requests, enough time, or a signal. A second signal ends the process at
 * once.
 */
class RecordingEnd {
  readonly reached: Promise<void>
  readonly #timer: NodeJS.Timeout | null
  readonly #now: () => void

  constructor(recording: Recording, { requests, seconds }: Limits) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.reached = promise
    this.#now = () => this.#end(resolve)
    this.#timer = seconds === null ? null : setTimeout(resolve, seconds * 1000)
    recording.onRequest = () => {
      if (requests !== null && recording.requests >= requests) resolve()
    }
    for (const signal of SIGNALS) process.on(signal, this.#now)
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    for (const signal of SIGNALS) process.off(signal, this.#now)
  }

  #end(resolve: () => void): void {
    for (const signal of SIGNALS) process.off(signal, this.#now)
    resolve()
  }
}

function clientOf(given: Arguments) {
  return {
    client: given.value('client')!,
    version: given.value('client-version'),
    label: given.value('label')!,
    situation: given.value('situation'),
  }
}

function flagsOf(given: Arguments): ConfigFlags {
  const named = ['upstream', 'data', 'cert', 'key'] as const
  const flags = Object.fromEntries(named.map((name) => [name, given.values(name)]))
  return { ...flags, listen: [given.value('listen')!] }
}

function countOf(given: Arguments, option: string): number | null {
  const value = given.value(option)
  if (value === null) return null
  if (/^[1-9]\d{0,6}$/.test(value)) return Number(value)
  throw new Fault(USAGE, `--${option} must be a whole number from 1 to 9999999, not "${value}"`)
}

/** Appends to an existing file; only its owner can read it. */
async function openFile(file: string): Promise<WriteStream> {
  const stream = createWriteStream(file, { flags: 'a', mode: 0o600 })
  try {
    await once(stream, 'open')
    return stream
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault('FILE_UNWRITABLE', `${file} cannot be written (${code})`, { cause: error })
  }
}

/** Blocks and delays nothing. */
const PASS_ALL = { rules: [] }
const SIGNALS = ['SIGINT', 'SIGTERM'] as const
/** For responses in progress; idle connections are closed at once. */
const DRAIN_MS = 2000
const TICKET_KEY_BYTES = 48
