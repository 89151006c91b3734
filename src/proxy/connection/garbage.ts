import { flushCompileCache } from 'node:module'
import v8 from 'node:v8'
import vm from 'node:vm'

/**
 * Ends the start of a process. It saves the compiled code for the next start (`NODE_COMPILE_CACHE`). This
 * comes first, because V8 accepts the saved code only under the flags of that moment. Then it collects
 * garbage, which stops everything for 50 to 100 ms, so it belongs before the process takes traffic. The start
 * reads files and signatures that grow the young generation to its full size, and V8 would keep that memory
 * until memory is short. Afterwards `gc` exists for noteBuffer.
 *
 * A process that serves traffic also changes two V8 flags. If objects from one line of code live long, V8
 * allocates later ones directly in the old generation, for good. After a time of slow uploads, the requests
 * of all connections would start there, and only a full collection could free them. A full collection stops
 * everything for 10 to 15 ms, and under load V8 would run one every other second. So the heap may grow to two
 * and a half times the memory in use. Other processes keep V8's defaults, because their garbage would grow to
 * 70 MiB.
 */
export function endStart({ servesTraffic }: { readonly servesTraffic: boolean }): void {
  flushCompileCache()
  if (servesTraffic) {
    v8.setFlagsFromString('--no-allocation-site-pretenuring')
    v8.setFlagsFromString('--heap-growing-percent=150') // before gc: each collection schedules the next one
  }
  v8.setFlagsFromString('--expose-gc')
  globalThis.gc ??= vm.runInNewContext('gc') as NodeJS.GCFunction
  globalThis.gc({ type: 'major', flavor: 'last-resort' })
}

/**
 * Counts bytes that Node allocates outside the V8 heap as Buffers. A few objects refer to many such bytes, so
 * the young generation fills too late, and V8 answers with a full collection.
 */
export function noteBuffer(bytes: number): void {
  noted += bytes
  if (noted < NOTED_MAX) return
  noted = 0
  if (globalThis.gc !== undefined) setImmediate(dropYoung)
}

function dropYoung(): void {
  globalThis.gc?.({ type: 'minor' })
}

let noted = 0
const NOTED_MAX = 8 * 1024 * 1024
