import * as z from 'zod'
import { analyzeCapture } from '../judging/capture-analysis.ts'
import type { TaskType } from '../jobs/task-types.ts'
import { TOOL_PROTOCOLS } from '../jobs/tools.ts'
import { comparedFingerprint } from './analysis.ts'
import type { ApiContext } from './context.ts'

/** Characters of base64. They fit into a body of 8 MiB together with a key log. */
const CAPTURE_TEXT_MAX = 6_291_456
const KEYLOG_LENGTH_MAX = 1_048_576

const captureRequest = z
  .strictObject({
    capture: z.base64('is not valid base64').max(CAPTURE_TEXT_MAX, 'is longer than 6 MiB').meta({
      description: 'A pcap or pcapng file, in base64.',
    }),
    keylog: z
      .string()
      .max(KEYLOG_LENGTH_MAX, 'is longer than 1 MiB')
      .optional()
      .meta({ description: 'TLS secrets in the SSLKEYLOGFILE format.' }),
  })
  .meta({ id: 'CaptureRequest' })

const captureAnswer = z
  .strictObject({
    format: z.enum(['pcap', 'pcapng']).nullable(),
    frames: z.int(),
    fault: z
      .strictObject({ kind: z.string(), offset: z.int(), detail: z.string() })
      .nullable()
      .meta({ description: 'Where the file is truncated or corrupt. Everything before that was read.' }),
    findings: z.array(z.record(z.string(), z.unknown())).meta({
      description: 'TLS handshakes and HTTP requests, in the format of `gatehouse analyze --json`.',
    }),
    found: z.int().meta({ description: 'The number of findings. `findings` lists at most the first 1000.' }),
    fingerprints: z
      .array(comparedFingerprint)
      .meta({ description: 'Each JA4 among the findings, with the software known to have it.' }),
  })
  .meta({ id: 'CaptureAnalysis' })

/** The task `analyze_capture`. It has no tool, because models have no captures at hand. */
export const ANALYZE_CAPTURE: TaskType<ApiContext> = {
  type: 'analyze_capture',
  title: 'Analyze a packet capture',
  description:
    'Finds the TLS handshakes and HTTP requests in a capture, their fingerprints, and the software known to have them.',
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
