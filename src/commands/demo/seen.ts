import type { IncomingHttpHeaders } from 'node:http'

/** What the gate told the app about a request. */
export interface SeenByGate {
  readonly verdict: string
  /** Name of the software, or the URL of its keys. */
  readonly name: string | null
  readonly category: string | null
  readonly confidence: string | null
  readonly nameConfidence: string | null
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
    nameConfidence: told('x-agent-name-confidence'),
    verified: told('x-agent-verified'),
    conflict: told('x-agent-conflict'),
    ja4: told('x-ja4-fingerprint'),
  }
}

/**
 * `agent GPTBot (crawler), 100 % sure, proven by ip-range`. Without a proof, the name is a claim of its own:
 * `agent, 97 % sure; name GPTBot (crawler), not proven, 50 % sure`.
 */
export function seenText(seen: SeenByGate): string {
  const { verdict, name, category, confidence, nameConfidence, verified, conflict } = seen
  const named = name === null || category === null ? name : `${name} (${category})`
  const contradicted = conflict === null ? [] : [`but ${conflict.replaceAll('-', ' ')}`]
  if (named === null || verified !== null) {
    const proven = verified === null ? [] : [`proven by ${verified}`]
    const who = named === null ? verdict : `${verdict} ${named}`
    return [who, ...sureText(confidence, verified !== null), ...proven, ...contradicted].join(', ')
  }
  const claim = [`name ${named}`, 'not proven', ...sureText(nameConfidence, false), ...contradicted]
  return `${[verdict, ...sureText(confidence, false)].join(', ')}; ${claim.join(', ')}`
}

/** Only a proof is sure. Without one, 1.00 is rounded. */
function sureText(confidence: string | null, isProven: boolean): readonly string[] {
  if (confidence === null) return []
  const percent = Math.round(Number(confidence) * 100)
  return [percent === 100 && !isProven ? 'over 99 % sure' : `${percent} % sure`]
}
