import { flushCompileCache } from 'node:module'
import v8 from 'node:v8'
import vm from 'node:vm'

/**
 * Ends the start of a process. First what has been compiled is kept for the next one (`NODE_COMPILE_CACHE`), for which V8 wants
 * the flags it had then. The rest belongs where nobody has been told to come yet, as it stops everything for 50 to 100 ms: what
 * the start has taken is given back, a young generation grown to its full size by files and signatures that were read, which
 * V8 would hold on to until garbage is collected with memory short. From here on `gc` is there, for noteBuffer.
 *
 * Who serves traffic has V8 told of it. Where objects have lived long, V8 makes those that follow from the same line of code
 * old at once, for good. A while of slow uploads would have the requests of all connections after them born old, and be
 * garbage that only a look at the whole heap can find. That look stops everybody for 10 to 15 ms, and as it costs little on
 * the whole, V8 would take it every other second under load. So the heap may grow to two and a half times of what was found
 * to be in use. Where nobody waits for the looks it is left to V8: what is dropped but not yet found would grow to 70 MiB.
 */
export function endStart({ servesTraffic }: { readonly servesTraffic: boolean }): void {
  flushCompileCache()
  if (servesTraffic) {
    v8.setFlagsFromString('--no-allocation-site-pretenuring')
    v8.setFlagsFromString('--heap-growing-percent=150') // before gc: each look decides when the next one comes
  }
  v8.setFlagsFromString('--expose-gc')
  globalThis.gc ??= vm.runInNewContext('gc') as NodeJS.GCFunction
  globalThis.gc({ type: 'major', flavor: 'last-resort' })
}

/**
 * Takes note of bytes that Node has brought in as a Buffer of its own. Few objects refer to many of them, so that the young
 * generation is full too late: what V8 does about the memory outside its heap is to look through all of it.
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
const NOTED_MAX = 4 * 1024 * 1024
