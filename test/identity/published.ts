import type { AgentCard } from '../../src/classify/known/claims/agent-card.ts'

/** Of a key finding: its agent has keys, and has published nothing else. */
export const NOTHING_PUBLISHED = { card: null, registries: [], ranges: null } as const

/** A card as it is read, with these members. */
export function cardWith(changes: Partial<AgentCard> = {}): AgentCard {
  return {
    ...{ url: 'https://agent.example/bot', name: 'Example Bot', homepage: null, contacts: [], purpose: [] },
    ...{ purposes: [], trigger: null, userAgents: [], robotsToken: null, keepsRobots: false, content: null },
    ...{ rateControl: null, rateExpectation: null, knownUrls: [], rangesUrl: null, ignored: [] },
    ...changes,
  }
}
