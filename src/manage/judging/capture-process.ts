import { constants, setPriority } from 'node:os'
import { Analyzer } from '../../capture/analyzer.ts'
import { CaptureReader } from '../../capture/capture-file.ts'
import type { Finding } from '../../capture/finding.ts'
import { KeyLog } from '../../capture/key-log.ts'
import type { CaptureAnswer, CaptureWork } from './capture-analysis.ts'

// The helper process that `analyzeCapture` starts. It reads one capture and exits.

function answerTo({ capture, keylog, ja4plus, findingsMax }: CaptureWork): CaptureAnswer {
  const bytes = Buffer.from(capture.buffer, capture.byteOffset, capture.byteLength)
  const keys = new KeyLog()
  if (keylog !== null) keys.add(`${keylog}\n`)
  keys.end()
  // A pcapng may carry keys after the packets that they decrypt, so the keys are collected first.
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

// A terminal's interrupt reaches every process of the group. This one ignores it and exits with its parent.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
process.once('disconnect', () => process.exit())
process.once('message', (work: CaptureWork) => {
  process.send!(answerTo(work), () => process.disconnect())
})
// Requests take priority on machines with few processors.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
