import { constants, setPriority } from 'node:os'
import { Analyzer } from '../../capture/analyzer.ts'
import { CaptureReader } from '../../capture/capture-file.ts'
import type { Finding } from '../../capture/finding.ts'
import { KeyLog } from '../../capture/key-log.ts'
import type { CaptureAnswer, CaptureWork } from './capture-analysis.ts'

// The process that analyzeCapture starts: it reads one capture, and ends.

function answerTo({ capture, keylog, ja4plus, findingsMax }: CaptureWork): CaptureAnswer {
  const bytes = Buffer.from(capture.buffer, capture.byteOffset, capture.byteLength)
  const keys = new KeyLog()
  if (keylog !== null) keys.add(`${keylog}\n`)
  keys.end()
  // Keys that a pcapng carries may stand behind the packets they open.
  new CaptureReader({ packet: () => undefined, secrets: (text) => keys.add(`${text}\n`) }).push(bytes)
  const findings: Finding[] = []
  let found = 0
  const sink = {
    ja4plus,
    found: (finding: Finding) => {
      if (found++ < findingsMax) findings.push(finding)
    },
  }
  const analyzer = new Analyzer(sink, keys)
  const reader = new CaptureReader(analyzer)
  reader.push(bytes)
  reader.end()
  analyzer.end()
  return { format: reader.format, frames: reader.frames, fault: reader.fault, findings, found }
}

// A terminal's interrupt reaches every process of the group; this one ends with whoever has started it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
process.once('disconnect', () => process.exit())
process.once('message', (work: CaptureWork) => {
  process.send!(answerTo(work), () => process.disconnect())
})
// Requests come first where processors are few.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
