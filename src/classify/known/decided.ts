import { type DecidableType, isDecisive } from './signature.ts'
import type { Software } from './software.ts'

/** The agents whose fingerprint of this type somebody has decided to be theirs, by its value: mostly one has it. */
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
