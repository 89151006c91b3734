import type { Purpose } from '../software.ts'

/**
 * What an agent says about itself in its signature agent card (draft-meunier-webbotauth-registry-04). The key proves
 * whose card it is, not that the card is true.
 */
export interface AgentCard {
  /** Where the card is published; of a card that stands in a registry, the URL of the registry. */
  readonly url: string
  readonly name: string | null
  /** A page about the agent. */
  readonly homepage: string | null
  /** URIs, such as `mailto:bot@agent.example`. */
  readonly contacts: readonly string[]
  /** As written, one or several words. */
  readonly purpose: readonly string[]
  /** The words of `purpose` in the vocabulary of policies. */
  readonly purposes: readonly Purpose[]
  readonly trigger: Trigger | null
  /** User-Agents, with `*` for any text. */
  readonly userAgents: readonly string[]
  /** Its name in robots.txt. */
  readonly robotsToken: string | null
  /** Whether the agent says that it keeps to robots.txt. */
  readonly keepsRobots: boolean
  readonly content: string | null
  readonly rateControl: string | null
  readonly rateExpectation: string | null
  readonly knownUrls: readonly string[]
  /** Where its address ranges are published. */
  readonly rangesUrl: string | null
  /** Members that are ignored, and why: `trigger must be one of fetcher, crawler`. */
  readonly ignored: readonly string[]
}

export type Trigger = (typeof TRIGGERS)[number]

/** `fetcher`: a person asks for the request. `crawler`: the agent decides by itself. */
export const TRIGGERS = ['fetcher', 'crawler'] as const

/** Words of cards, of AIPREF (draft-ietf-aipref-vocab) and of Content-Signal that name a purpose of policies. */
export const CARD_PURPOSES: ReadonlyMap<string, Purpose> = new Map<string, Purpose>([
  ['ai-input', 'assistant'],
  ['ai-train', 'training'],
  ['tdm', 'training'],
  ['train-ai', 'training'],
  ['train-genai', 'training'],
])

/**
 * The purposes of a proven agent. Its card can choose among the published ones, so that it says which one it comes for. It
 * adds none: otherwise a crawler for training could call itself a search engine.
 */
export function statedPurposes<Word extends string>(
  published: readonly Word[],
  card: Pick<AgentCard, 'purposes'> | null,
): readonly Word[] {
  if (card === null) return published
  const stated = published.filter((purpose) => (card.purposes as readonly string[]).includes(purpose))
  return stated.length === 0 ? published : stated
}
