const KNOWN = new Set([
  ...['agent', 'automation', 'human', 'unknown', 'verified'],
  ...['pass', 'tag', 'block', 'rate_limit', 'tarpit', 'charge'],
  ...['good', 'warn', 'bad', 'low', 'medium', 'high', 'critical'],
])

/** A word in its colour. The colour alone never carries meaning. */
export function Badge({ of, text = of }: { readonly of: string; readonly text?: string }) {
  return <span class={`badge ${KNOWN.has(of) ? of : 'plain'}`}>{text}</span>
}
