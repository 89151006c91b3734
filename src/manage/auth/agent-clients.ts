import { readAgentId } from '../../identity/keys/agent-document.ts'
import { isInTime } from '../../identity/keys/agent-key.ts'
import { Fault } from '../../shared/fault.ts'
import type { Store } from '../../store/store.ts'
import type { AgentIdentities, KnownAgent } from './agent-identity.ts'
import type { ClientDocument, ClientDocuments, Standing } from './oauth/client-documents.ts'
import type { People } from './oauth/people.ts'
import { knownPlan, knownScopes } from '../http/access/principal.ts'

/** Agents, and apps that host their own client documents, as clients of the authorization server. */
export class AgentClients implements ClientDocuments {
  readonly #agents: AgentIdentities
  readonly #store: Pick<Store, 'trust'>
  readonly #people: Pick<People, 'isAnybody'> | null
  readonly #nowMs: () => number

  /** `people`: the accounts an app can ask for consent. */
  constructor(
    agents: AgentIdentities,
    store: Pick<Store, 'trust'>,
    people: Pick<People, 'isAnybody'> | null,
    nowMs: () => number,
  ) {
    this.#agents = agents
    this.#store = store
    this.#people = people
    this.#nowMs = nowMs
  }

  /** Throws an OAuth error if the client's document cannot be used. */
  async find(url: string): Promise<ClientDocument | null> {
    const read = readAgentId(url, this.#agents.rules)
    if ('refused' in read || read.id !== url) return null
    // Do not fetch anything for a client that has no access and no account to ask.
    if ((await this.standing(url)) === null && !(await this.#people?.isAnybody())) return null
    const { name, keys, redirectUris } = await this.#known(url)
    // If all keys have expired, the key set is empty but not null: the client must still prove a key.
    const inTime = keys.filter((key) => isInTime(key, this.#nowMs()))
    return { name, redirectUris, jwks: keys.length === 0 ? null : { keys: inTime.map(({ jwk }) => jwk) } }
  }

  async standing(url: string): Promise<Standing | null> {
    const trusted = await this.#store.trust.of('agent', url)
    if (trusted === null) return null
    const { name, scopes, apps, plan } = trusted
    return { name, scopes: knownScopes(scopes), apps, plan: knownPlan(plan) }
  }

  async #known(url: string): Promise<KnownAgent> {
    try {
      return await this.#agents.find(url)
    } catch (error) {
      if (!(error instanceof Fault) || error.code.startsWith('STORE_')) throw error
      const { errors } = await import('oidc-provider')
      const text = `unknown client: ${error.message}`
      throw Object.assign(new errors.CustomOIDCProviderError('invalid_client', text), NOT_KNOWN)
    }
  }
}

/** RFC 6749 §5.2. */
const NOT_KNOWN = { status: 401, statusCode: 401 }
