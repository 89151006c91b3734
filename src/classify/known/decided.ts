import { type DecidableType, isDecisive } from './signature.ts'
import type { Software } from './software.ts'

/**
 * The agents for which an admin marked a fingerprint of this type as decisive, by its value. Most values have
 * one agent.
 */
export function decidedAgents(
  list: readonly Software[],
  type: DecidableType,
): ReadonlyMap<string, readonly Software[]> {
  const agents = new Map<string, Software[]>()
  for (const software of list) {
    if (software.kind !== 'agent') continue
    for (const signature of software.signatures) {
      if (signature.type !== type || !isDecisive(signature)) continue
      const others = agents.get(signature.value)
      if (others === undefined) agents.set(signature.value, [software])
      else if (!others.includes(software)) others.push(software)
    }
  }
  return agents
}

export const DECIDED_BY_NOBODY: readonly Software[] = Object.freeze([])
