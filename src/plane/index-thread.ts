import { parentPort, workerData } from 'node:worker_threads'
import { buildSignatureIndex } from '../classify/index-builder.ts'

// Building an index takes milliseconds for a thousand signatures and seconds for a million.
const bytes = buildSignatureIndex(workerData.signatures, workerData.seed)
parentPort!.postMessage(bytes, [bytes.buffer])
