/**
 * Gives back what the start has taken: a young generation grown to its full size by files and signatures that were
 * read, which V8 would hold on to until garbage is collected with memory short. It stops everything for some 50 ms, and
 * so belongs where nobody is served yet. Without `--expose-gc`, which bin.js sets, it does nothing.
 */
export function dropStartGarbage(): void {
  globalThis.gc?.({ type: 'major', flavor: 'last-resort' })
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
