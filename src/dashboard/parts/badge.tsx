const KNOWN = new Set([
  ...['agent', 'automation', 'human', 'unknown', 'verified'],
  ...['pass', 'tag', 'block', 'challenge', 'throttle'],
  ...['good', 'warn', 'bad', 'low', 'medium', 'high', 'critical'],
])

/** A word in the colour of what it says: never the colour alone. */
export function Badge({ of, text = of }: { readonly of: string; readonly text?: string }) {
  return <span class={`badge ${KNOWN.has(of) ? of : 'plain'}`}>{text}</span>
}
