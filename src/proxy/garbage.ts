import v8 from 'node:v8'

/**
 * Gives back what the start has taken: a young generation grown to its full size by files and signatures that were
 * read, which V8 would hold on to until garbage is collected with memory short. It stops everything for 50 to 100 ms,
 * and so belongs where nobody has been told to come yet. Without `--expose-gc`, which bin.js sets, it does nothing.
 */
export function dropStartGarbage(): void {
  globalThis.gc?.({ type: 'major', flavor: 'last-resort' })
}

/**
 * Leaves it to V8 again when to look through the whole heap, where bin.js has told it to wait: for a process that serves
 * no traffic, so that nobody waits for the look. In the primary, which drops little, it came four times in twenty minutes
 * of a reload every 400 ms, and what was dropped but not yet found grew to 70 MiB resident, much of it outside the heap.
 */
export function collectAsUsual(): void {
  v8.setFlagsFromString('--heap-growing-percent=0')
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
