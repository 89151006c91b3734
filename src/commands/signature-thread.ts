import { constants, setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { Fault } from '../fault.ts'
import { makeSignatureSet } from '../plane/signature-set.ts'
import { loadContent } from './signature-content.ts'
import type { ThreadAnswer, ThreadWork } from './signature-compiler.ts'

// Reading a million signatures takes seconds, and memory that is given back when a thread ends.
const { sources, folder, newest } = workerData as ThreadWork

// On Linux this is of this thread alone: requests come first where processors are few.
if (process.platform === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL)

async function answer(): Promise<ThreadAnswer> {
  try {
    return { kind: 'set', set: await makeSignatureSet(await loadContent(sources), folder, newest) }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { kind: 'fault', code: error.code, message: error.message }
  }
}

parentPort!.postMessage(await answer())
