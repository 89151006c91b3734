import { constants, setPriority } from 'node:os'
import { Fault } from '../../shared/fault.ts'
import { type CompilerAnswer, type CompilerWork, compiled } from './signature-compiler.ts'

// The process that a SignatureCompiler starts: it makes sets, or merges them, until nobody has anything for it any more.

async function answerTo(work: CompilerWork): Promise<CompilerAnswer> {
  try {
    if (work.kind === 'compile') return { kind: 'set', ...(await compiled(work)) }
    // A database takes time to load, which who compiles does not have.
    const { mergeCatalogue } = await import('./catalogue-merging.ts')
    return { kind: 'merged', counts: await mergeCatalogue(work) }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { kind: 'fault', code: error.code, message: error.message }
  }
}

const MOMENT_MS = 500

// A terminal's interrupt reaches every process of the group; this one ends with whoever has started it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
process.once('disconnect', () => process.exit())
if (!process.connected) process.exit() // who has started it ended while this file was loaded: nobody says so again
let working = Promise.resolve()
process.on('message', (work: CompilerWork) => {
  working = working.then(async () => void process.send!(await answerTo(work)))
})
// Requests come first where processors are few; what is done in a moment is not worth the wait.
setTimeout(() => setPriority(constants.priority.PRIORITY_BELOW_NORMAL), MOMENT_MS).unref()
