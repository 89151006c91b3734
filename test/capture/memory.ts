import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** In bytes: what is in use, not what waits to be collected. */
export function memoryInUse(): number {
  collectGarbage()
  collectGarbage() // buffers found free by the one are freed by the next
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')
