import { readAgentId, documentPlaceOf } from '../../identity/keys/agent-document.ts'
import type { AgentCard } from '../../classify/known/claims/agent-card.ts'
import { cardKind, type ListedCard } from '../../identity/cards/registries.ts'
import { type DocumentSettings, Documents, DocumentUnusable } from '../../identity/fetch/document-fetch.ts'

/** The signature agent card of an agent, or why it is missing. */
export interface FoundCard {
  /** Where it was looked for; `null`: nowhere. */
  readonly url: string | null
  readonly card: AgentCard | null
  /** In words; `null`: there is a card. */
  readonly why: string | null
}

/**
 * Fetches the signature agent cards of agents in the signatures when they are asked for, with all guards of documents that
 * others publish. Callers choose an agent, and never a URL.
 */
export class SignatureAgentCards {
  readonly #allowPrivate: boolean
  /** `null`: fetching is off. */
  readonly #documents: Documents<ListedCard> | null

  constructor(settings: DocumentSettings, isOn: boolean) {
    const { allowPrivate } = settings
    this.#allowPrivate = allowPrivate
    this.#documents = isOn ? new Documents(cardKind({ allowPrivate }), settings) : null
  }

  /** `signatureAgent`: as in the signatures. Never rejects because of the agent's server. */
  async find(signatureAgent: string | null): Promise<FoundCard> {
    if (signatureAgent === null) return none(null, 'no key directory of this agent is known')
    const read = readAgentId(signatureAgent, { allowPrivate: this.#allowPrivate })
    if ('refused' in read) return none(null, `its key directory ${read.refused}`)
    const url = documentPlaceOf(read.id)
    if (this.#documents === null) return none(url, 'identity.signatures is off')
    try {
      const { card } = await this.#documents.get(url)
      return card === null ? none(url, 'its key directory has only keys') : { url, card, why: null }
    } catch (error) {
      // The message names the document and quotes nothing of it.
      if (error instanceof DocumentUnusable) return none(url, error.message)
      throw error
    }
  }

  /** Aborts fetches in progress. */
  close(): void {
    this.#documents?.close()
  }
}

function none(url: string | null, why: string): FoundCard {
  return { url, card: null, why }
}
