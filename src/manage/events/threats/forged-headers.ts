import type { Rule } from './rule.ts'

/** Only the gateway sets these headers. A client that sends them tries to pass for another one. */
export const FORGED_HEADERS: Rule = {
  reason: 'forged_headers',
  holds: ({ forged }) => forged.length > 0,
  detail: ({ forged }) => {
    const said = forged.slice(0, SAID_MAX).map((name) => name.slice(0, NAME_MAX))
    const more = forged.length - said.length
    return `it sent headers that only the gateway sets: ${said.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  },
}

const SAID_MAX = 5
const NAME_MAX = 64
