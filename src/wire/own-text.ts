/**
 * Copies a text, one character a byte. A slice of a header makes V8 keep the whole header while the slice, or
 * a text made with it, is in use; a client can make that header long.
 */
export function ownText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

/**
 * The start of a text: at most `charactersMax` characters, and none from `end` on. V8 keeps no more than that
 * in memory.
 */
export function shortText(text: string, charactersMax: number, end = text.length): string {
  const first = text.slice(0, Math.min(end, charactersMax))
  return text.length > charactersMax ? ownText(first) : first
}

/** The same for a text in Unicode. */
export function shortUnicode(text: string, charactersMax: number): string {
  return text.length > charactersMax ? Buffer.from(text.slice(0, charactersMax)).toString() : text
}
