import { fileURLToPath } from 'node:url'
import type { CaptureFault } from '../../capture/capture-file.ts'
import type { Finding } from '../../capture/finding.ts'
import { HelperProcess } from '../../shared/helper-process.ts'
import { type ComparedFingerprint, withOwners } from './comparison.ts'
import { knowledgeOf } from './detection.ts'
import type { JudgingContext } from './context.ts'
import { invalid, Refusal } from '../http/refusal.ts'

interface CaptureRequest {
  /** Base64. */
  readonly capture: string
  readonly keylog?: string | undefined
}

type CaptureAnalysis = Omit<CaptureAnswer, 'findings'> & {
  findings: Record<string, unknown>[]
  fingerprints: ComparedFingerprint[]
}

/** The input of the helper process. */
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
  /** The total number of findings; `findings` is capped at `findingsMax`. */
  readonly found: number
}

/** A capture may be hostile, so a helper process reads it within limits of time and memory. */
export async function analyzeCapture(
  { capture, keylog }: CaptureRequest,
  management: Pick<JudgingContext, 'snapshot' | 'ja4plus'>,
): Promise<CaptureAnalysis> {
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
    throw invalid([{ pointer: '/capture', detail: `is not a packet capture: ${answer.fault.detail}` }])
  const ja4s = new Set(findings.flatMap((finding) => (finding.kind === 'tls' ? [finding.ja4] : [])))
  const fingerprints = [...ja4s].map((fingerprint) => withOwners(knowledge, { type: 'ja4', fingerprint }))
  return { ...answer, findings: findings.map((finding) => ({ ...finding })), fingerprints }
}

/** Runs one analysis at a time: each may use a whole processor. */
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
