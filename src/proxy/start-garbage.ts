/**
 * Gives back what the start has taken: a young generation grown to its full size by files and signatures that were
 * read, which V8 would hold on to until garbage is collected with memory short. It stops everything for some 50 ms, and
 * so belongs where nobody is served yet. Without `--expose-gc`, which bin.js sets, it does nothing.
 */
export function dropStartGarbage(): void {
  globalThis.gc?.({ type: 'major', flavor: 'last-resort' })
}
