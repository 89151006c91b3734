import { fileURLToPath } from 'node:url'
import * as z from 'zod'
import type { CaptureFault } from '../capture/capture-file.ts'
import type { Finding } from '../capture/finding.ts'
import { HelperProcess } from '../helper-process.ts'
import { comparedFingerprint } from './api/analysis.ts'
import { withOwners } from './comparison.ts'
import { knowledgeOf } from './detection.ts'
import type { Management } from './management.ts'
import { invalid, Refusal } from './refusal.ts'
import type { TaskType } from './task-types.ts'
import { TOOL_PROTOCOLS } from './tools.ts'

/** What the other process is given. */
export interface CaptureWork {
  readonly capture: Uint8Array
  readonly keylog: string | null
  readonly ja4plus: boolean
  readonly findingsMax: number
}

export interface CaptureAnswer {
  readonly format: 'pcap' | 'pcapng' | null
  readonly frames: number
  readonly fault: CaptureFault | null
  readonly findings: readonly Finding[]
  /** How many there were. */
  readonly found: number
}

/** In base64: what fits a body of 8 MiB with a key log beside it. */
const CAPTURE_TEXT_MAX = 6_291_456
const KEYLOG_LENGTH_MAX = 1_048_576

const captureRequest = z
  .strictObject({
    capture: z.base64('is no base64').max(CAPTURE_TEXT_MAX, 'is longer than 6 MiB').meta({
      description: 'A pcap or pcapng file, in base64.',
    }),
    keylog: z
      .string()
      .max(KEYLOG_LENGTH_MAX, 'is longer than 1 MiB')
      .optional()
      .meta({ description: 'Secrets of TLS, as SSLKEYLOGFILE has them.' }),
  })
  .meta({ id: 'CaptureRequest' })

const captureAnswer = z
  .strictObject({
    format: z.enum(['pcap', 'pcapng']).nullable(),
    frames: z.int(),
    fault: z
      .strictObject({ kind: z.string(), offset: z.int(), detail: z.string() })
      .nullable()
      .meta({ description: 'Where the file is cut off or broken; what stands before that was read.' }),
    findings: z
      .array(z.record(z.string(), z.unknown()))
      .meta({ description: 'TLS handshakes and HTTP requests, as `gatehouse analyze --json` has them.' }),
    found: z
      .int()
      .meta({ description: 'How many there are; of more than 1000, the first are in `findings`.' }),
    fingerprints: z
      .array(comparedFingerprint)
      .meta({ description: 'Each JA4 among the findings, and who is known to have it.' }),
  })
  .meta({ id: 'CaptureAnalysis' })

/** The task of that name: it has no tool, because a capture is not what models have at hand. */
export const ANALYZE_CAPTURE: TaskType = {
  type: 'analyze_capture',
  title: 'Analyze a packet capture',
  description:
    'Finds the TLS handshakes and HTTP requests in a capture, their fingerprints, and who is known to have them.',
  itemsMax: 8,
  atOnceMax: 1,
  tool: {
    name: 'analyze_capture',
    title: 'Analyze a packet capture',
    description: '',
    scopes: ['detect'],
    protocols: TOOL_PROTOCOLS,
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    input: captureRequest,
    output: captureAnswer,
    run: async (given, _caller, management) =>
      analyzeCapture(given as z.output<typeof captureRequest>, management),
  },
}

/** Anybody may have made it, and it may be made to take long: another process reads it, for so long and with so much. */
async function analyzeCapture(
  { capture, keylog }: z.output<typeof captureRequest>,
  management: Management,
): Promise<z.output<typeof captureAnswer>> {
  const knowledge = knowledgeOf(management)
  const { ja4plus } = management
  const work = {
    capture: Buffer.from(capture, 'base64'),
    keylog: keylog ?? null,
    ja4plus,
    findingsMax: FINDINGS_MAX,
  }
  const { findings, ...answer } = await inTurn(() => inProcess(work))
  if (answer.fault?.kind === 'not-a-capture')
    throw invalid([{ pointer: '/capture', detail: `is no capture: ${answer.fault.detail}` }])
  const ja4s = new Set(findings.flatMap((finding) => (finding.kind === 'tls' ? [finding.ja4] : [])))
  const fingerprints = [...ja4s].map((fingerprint) => withOwners(knowledge, { type: 'ja4', fingerprint }))
  return { ...answer, findings: findings.map((finding) => ({ ...finding })), fingerprints }
}

/** One after the other: each may take a processor. */
function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  const result = turn.then(work)
  turn = result.catch(() => undefined)
  return result
}

let turn: Promise<unknown> = Promise.resolve()

async function inProcess(work: CaptureWork): Promise<CaptureAnswer> {
  const helper = new HelperProcess(PROGRAM, 'the process that reads captures', {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    execArgv: [`--max-old-space-size=${MEMORY_MIB_MAX}`],
    env: {},
    timeout: TIME_MAX_MS,
    killSignal: 'SIGKILL',
  })
  try {
    return await helper.ask<CaptureAnswer>(work)
  } catch (error) {
    if (!helper.hasBegun) throw new Refusal('unavailable', (error as Error).message)
    throw new Refusal('too_large', `the capture takes more than ${TIME_MAX_MS / 1000} s, or memory, to read`)
  }
}

const FINDINGS_MAX = 1000
const TIME_MAX_MS = 20_000
const MEMORY_MIB_MAX = 256
const PROGRAM = fileURLToPath(
  new URL(`./capture-process${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)
