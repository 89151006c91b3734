/**
 * The same text, one character a byte, in memory of its own. A piece of a header has V8 keep the whole header, for as long
 * as the piece, or a text made with it, is remembered; who sends the header may make it as long as we let him.
 */
export function ownText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
