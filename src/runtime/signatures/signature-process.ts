import { constants, setPriority } from 'node:os'
import { Fault } from '../../shared/fault.ts'
import { type CompilerAnswer, type CompilerWork, compiled } from './signature-compiler.ts'

// The helper process of a SignatureCompiler. It makes sets or merges them until its parent disconnects.

async function answerTo(work: CompilerWork): Promise<CompilerAnswer> {
  try {
    if (work.kind === 'compile') return { kind: 'set', ...(await compiled(work)) }
    // Loaded only for a merge, because the database code is slow to load.
    const { mergeCatalogue } = await import('./catalogue-merging.ts')
    return { kind: 'merged', counts: await mergeCatalogue(work) }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { kind: 'fault', code: error.code, message: error.message }
  }
}

const MOMENT_MS = 500

// Ignores signals, because an interrupt at a terminal reaches the whole process group.
// This process ends with its parent.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
process.once('disconnect', () => process.exit())
if (!process.connected) process.exit() // the parent ended during startup, so no event follows
let working = Promise.resolve()
process.on('message', (work: CompilerWork) => {
  working = working.then(async () => void process.send!(await answerTo(work)))
})
// Lowers the priority for long work, because requests come first. Work that ends before this does not matter.
setTimeout(() => setPriority(constants.priority.PRIORITY_BELOW_NORMAL), MOMENT_MS).unref()
