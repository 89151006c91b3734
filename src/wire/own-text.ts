/**
 * The same text, one character a byte, in memory of its own. A piece of a header has V8 keep the whole header, for as long
 * as the piece, or a text made with it, is remembered; who sends the header may make it as long as we let him.
 */
export function ownText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

/** The first of a text, of `charactersMax` at most, and not from `end` on. It does not have V8 keep more than so many. */
export function shortText(text: string, charactersMax: number, end = text.length): string {
  const first = text.slice(0, Math.min(end, charactersMax))
  return text.length > charactersMax ? ownText(first) : first
}
