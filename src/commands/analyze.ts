import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { Analyzer } from '../capture/analyzer.ts'
import { type CaptureFault, CaptureReader } from '../capture/capture-file.ts'
import type { Finding, FindingSink } from '../capture/finding.ts'
import { KeyLog } from '../capture/key-log.ts'
import { Fault } from '../shared/fault.ts'
import { USAGE } from '../terminal/arguments.ts'
import { type CaptureSource, openCapture } from './record/capture-source.ts'
import type { Arguments, Command, ExitCode } from '../terminal/command.ts'
import { counted, FindingTable } from '../terminal/finding-table.ts'
import type { Io } from '../terminal/io.ts'
import { ja4plusFrom } from '../runtime/ja4plus-setting.ts'
import { Progress } from '../terminal/progress.ts'
import { unreadable } from '../terminal/unreadable.ts'

export const analyze: Command = {
  name: 'analyze',
  summary: 'Fingerprint the connections in packet captures',
  description: [
    'Reads pcap and pcapng captures. Prints the JA4, JA4S and JA4X of each TLS handshake and the JA4H of each HTTP request: over TCP, QUIC and DTLS, on any port, inside VLANs and tunnels, and inside TLS if the capture or --keylog has the keys. Unpacks gzip and zstd.',
    'If a file is cut off or damaged, prints what could be read before that, then the error, and exits with code 1.',
  ],
  operands: [{ name: 'FILE', description: 'A capture; - is standard input', many: true }],
  options: [
    { name: 'json', description: 'One JSON object a line, instead of a table' },
    {
      name: 'keylog',
      value: 'FILE',
      description: 'TLS secrets for decryption (the format of SSLKEYLOGFILE)',
    },
    { name: 'follow', description: 'Continue to read as the capture grows, until interrupted' },
    {
      name: 'no-ja4plus',
      description: 'Leave out JA4S, JA4H and JA4X, as GATEHOUSE_FINGERPRINTS_JA4PLUS=false does',
    },
  ],
  examples: [
    { command: 'analyze capture.pcap', description: 'The content of a capture as a table' },
    {
      command: 'analyze --json --keylog keys.log capture.pcapng',
      description: 'The same for a program, decrypted',
    },
    { command: 'analyze --follow -', description: 'Live, behind "tcpdump -U -w - |"' },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const several = given.operands.length > 1
  const following = given.flag('follow')
  if (following && several) throw new Fault(USAGE, '--follow needs exactly one FILE')
  const keys = new KeyLog()
  const keylog = given.value('keylog')
  const task: Task = {
    json: given.flag('json'),
    ja4plus: ja4plusFrom(io.env) && !given.flag('no-ja4plus'),
    several,
    keys,
    keyLogFile: keylog === null ? null : new KeyLogFile(keylog, keys),
    io,
  }
  await task.keyLogFile?.refresh()
  if (following) return interruptible((interrupted) => analyzeFiles(given.operands, task, interrupted))
  keys.end() // nothing is appending to the key log, so its last line is complete
  if (keylog !== null && keys.size === 0)
    io.stderr.write(`gatehouse analyze: --keylog ${keylog}: has no secrets to decrypt with\n`)
  return analyzeFiles(given.operands, task, null)
}

interface Task {
  readonly json: boolean
  readonly ja4plus: boolean
  /** Findings then name their file. */
  readonly several: boolean
  readonly keys: KeyLog
  readonly keyLogFile: KeyLogFile | null
  readonly io: Io
}

/** With --follow, an interrupt ends following, not the program: pending findings are still printed. */
async function interruptible(follow: (interrupted: AbortSignal) => Promise<ExitCode>): Promise<ExitCode> {
  const controller = new AbortController()
  const interrupt = () => controller.abort()
  process.once('SIGINT', interrupt)
  try {
    return await follow(controller.signal)
  } finally {
    process.off('SIGINT', interrupt)
  }
}

async function analyzeFiles(
  files: readonly string[],
  task: Task,
  interrupted: AbortSignal | null,
): Promise<ExitCode> {
  let exitCode: ExitCode = 0
  for (const file of files) {
    try {
      await analyzeFile(file, task, interrupted)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      exitCode = 1
      task.io.stderr.write(`gatehouse analyze: ${file}: ${error.message}\n`)
    }
  }
  return exitCode
}

/** Throws a Fault after everything readable has been reported. */
async function analyzeFile(file: string, task: Task, interrupted: AbortSignal | null): Promise<void> {
  const { keys, keyLogFile, io } = task
  const source = await openCapture(file, io, interrupted)
  if (source.isFile && interrupted === null) await readSecrets(file, keys, io)

  const report = new Report(task, file)
  const analyzer = new Analyzer(report, keys)
  const reader = new CaptureReader(analyzer)
  let broken: string | null = null
  try {
    for await (const chunk of source.chunks) {
      if (interrupted !== null) await keyLogFile?.refresh()
      reader.push(chunk)
      await report.flush(source)
      if (reader.fault !== null) break
    }
    if (interrupted?.aborted !== true) reader.end()
    broken = reader.fault && faultText(reader.fault)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    if (interrupted?.aborted !== true) broken = error.message
  }
  analyzer.end()
  if (reader.fault?.kind === 'not-a-capture') throw new Fault('CAPTURE_BROKEN', reader.fault.detail)
  report.summary(reader.frames)
  await report.flush(source)
  report.close()
  if (broken !== null) throw new Fault('CAPTURE_BROKEN', `${broken}, after ${counted(reader.frames)}`)
}

/** Reads the keys first: in a pcapng they may follow the packets that they decrypt. */
async function readSecrets(file: string, keys: KeyLog, io: Io): Promise<void> {
  const reader = new CaptureReader({ packet: () => undefined, secrets: (text) => keys.add(`${text}\n`) })
  const source = await openCapture(file, io, null)
  try {
    for await (const chunk of source.chunks) {
      reader.push(chunk)
      if (reader.fault !== null || reader.format === 'pcap') return
    }
  } catch (error) {
    if (!(error instanceof Fault)) throw error // reported by the main read
  }
}

function faultText({ kind, offset, detail }: CaptureFault): string {
  return `${kind} at byte ${offset}: ${detail}`
}

/** Prints findings as JSON lines or as a table; output is flushed when the reader pauses. */
class Report implements FindingSink {
  readonly ja4plus: boolean
  readonly #io: Io
  readonly #file: string | null
  readonly #table: FindingTable | null
  readonly #progress: Progress
  #text = ''

  constructor({ json, ja4plus, several, io }: Task, file: string) {
    this.ja4plus = ja4plus
    this.#io = io
    this.#file = several ? file : null
    this.#table = json ? null : new FindingTable(io, this.#file)
    this.#progress = new Progress(io)
  }

  found(finding: Finding): void {
    if (this.#table !== null) this.#text += this.#table.row(finding)
    else this.#text += `${JSON.stringify(this.#file === null ? finding : { file: this.#file, ...finding })}\n`
  }

  summary(frames: number): void {
    if (this.#table !== null) this.#text += this.#table.summary(frames)
  }

  async flush(source: CaptureSource): Promise<void> {
    if (this.#text !== '') {
      this.#progress.clear()
      const text = this.#text
      this.#text = ''
      if (!this.#io.stdout.write(text)) await once(this.#io.stdout, 'drain')
    }
    const done = source.progress()
    if (done !== null) this.#progress.draw(done.read, done.size, `${mebibytes(done.size)} MiB`)
  }

  close(): void {
    this.#progress.clear()
  }
}

function mebibytes(bytes: number): string {
  return (bytes / (1024 * 1024)).toFixed(1)
}

/** A key log file that another program may still write. Each `refresh` reads what was appended. */
class KeyLogFile {
  readonly #path: string
  readonly #keys: KeyLog
  #read = 0

  constructor(path: string, keys: KeyLog) {
    this.#path = path
    this.#keys = keys
  }

  async refresh(): Promise<void> {
    try {
      await this.#readOn()
    } catch (error) {
      throw new Fault('UNREADABLE', `--keylog ${this.#path}: ${unreadable(error).message}`, { cause: error })
    }
  }

  async #readOn(): Promise<void> {
    const buffer = Buffer.allocUnsafe(64 * 1024)
    await using handle = await open(this.#path, 'r')
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, this.#read)
      if (bytesRead === 0) return
      this.#read += bytesRead
      this.#keys.add(buffer.toString('latin1', 0, bytesRead))
    }
  }
}
