import { flushCompileCache } from 'node:module'
import v8 from 'node:v8'
import vm from 'node:vm'

/**
 * For a process that serves, once what it needs is loaded: V8 takes no code that was compiled before under other flags.
 *
 * Where objects have lived long, V8 makes those that follow from the same line of code old at once, for good. A while of
 * slow uploads would have the requests of all connections after them born old, and be garbage that only a look at the
 * whole heap can find. That look stops everybody for 10 to 15 ms, and as it costs little on the whole, V8 would take it
 * every other second under load. So the heap may grow to two and a half times of what was found to be in use. Not in a
 * process that serves no traffic: what it has dropped but not yet found would grow to 70 MiB, and nobody waits for its looks.
 */
export function tuneForTraffic(): void {
  flushCompileCache() // of NODE_COMPILE_CACHE: what is compiled from here on is of no use to the next start
  v8.setFlagsFromString('--no-allocation-site-pretenuring')
  v8.setFlagsFromString('--heap-growing-percent=150')
}

/**
 * Gives back what the start has taken: a young generation grown to its full size by files and signatures that were
 * read, which V8 would hold on to until garbage is collected with memory short. It stops everything for 50 to 100 ms,
 * and so belongs where nobody has been told to come yet. From here on `gc` is there, for noteBuffer.
 */
export function dropStartGarbage(): void {
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
