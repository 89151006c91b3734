import type { IncomingHttpHeaders } from 'node:http'

/** What the gate told the app about a request. */
export interface SeenByGate {
  readonly verdict: string
  /** Name of the software, or the URL of its keys. */
  readonly name: string | null
  readonly category: string | null
  readonly confidence: string | null
  /** How the identity was proven. */
  readonly verified: string | null
  /** Contradictory evidence. */
  readonly conflict: string | null
  readonly ja4: string | null
}

/** Reads headers that only the gate sets: it removes such headers from client requests. */
export function seenIn(headers: IncomingHttpHeaders): SeenByGate {
  const told = (name: string) => {
    const value = headers[name]
    return typeof value === 'string' && value !== '' ? value : null
  }
  return {
    verdict: told('x-agent-verdict') ?? 'not judged',
    name: told('x-agent-name') ?? told('x-agent-identity'),
    category: told('x-agent-category'),
    confidence: told('x-agent-confidence'),
    verified: told('x-agent-verified'),
    conflict: told('x-agent-conflict'),
    ja4: told('x-ja4-fingerprint'),
  }
}

/** `agent GPTBot (crawler), 97 % sure, proven by web-bot-auth`. */
export function seenText({ verdict, name, category, confidence, verified, conflict }: SeenByGate): string {
  return [
    [verdict, name, category === null ? null : `(${category})`].filter((part) => part !== null).join(' '),
    ...(confidence === null ? [] : [`${Math.round(Number(confidence) * 100)} % sure`]),
    ...(verified === null ? [] : [`proven by ${verified}`]),
    ...(conflict === null ? [] : [`but ${conflict.replaceAll('-', ' ')}`]),
  ].join(', ')
}
