import type { Provider } from 'oidc-provider'
import type { Log } from '../../../shared/log.ts'
import type { Store } from '../../../store/store.ts'
import type { Sealer } from '../sealer.ts'
import { AccessTokens } from './access-tokens.ts'
import type { Assertions } from './assertions.ts'
import { Beginnings } from './beginnings.ts'
import { Revocations } from './revocations.ts'
import type { ClientDocuments } from './client-documents.ts'
import { DpopNonces } from './dpop-nonces.ts'
import { Denials } from './denials.ts'
import { type KnownClients, withDashboard } from './known-clients.ts'
import type { People } from './people.ts'
import { TokenSigningKeys } from './signing-keys.ts'

export interface OAuthSettings {
  readonly accessTokenTtlS: number
  readonly keyRotationMs: number
  /** Whether clients can register themselves: no, with the registration token, or all. */
  readonly registration: 'off' | 'token' | 'open'
  readonly registrationToken: string | null
  /** Whether DPoP proofs must contain one of our nonces. Default: no. */
  readonly needsDpopNonce?: boolean
}

interface OAuthParts {
  readonly publicUrl: string
  readonly store: Store
  readonly sealer: Sealer
  readonly log: Log
  readonly people: People | null
  readonly documents: ClientDocuments
  readonly settings: OAuthSettings
  readonly hasDashboard: boolean
  /** `null`: identity assertions are not accepted. */
  readonly assertions: Assertions | null
  nowMs(): number
}

/** The state of the OAuth 2.0 authorization server, and its access tokens. */
export class OAuth {
  readonly settings: OAuthSettings
  readonly people: People | null
  readonly keys: TokenSigningKeys
  readonly denials: Denials
  readonly clients: KnownClients
  readonly tokens: AccessTokens
  /** `null`: proofs need no nonce. */
  readonly nonces: DpopNonces | null
  readonly beginnings = new Beginnings()
  readonly revocations = new Revocations()
  readonly #parts: OAuthParts
  #provider: { readonly kid: string; readonly provider: Provider } | null = null

  constructor(parts: OAuthParts) {
    const { publicUrl, store, sealer, log, people, documents, settings, nowMs } = parts
    this.#parts = parts
    this.settings = settings
    this.people = people
    this.keys = new TokenSigningKeys(store, sealer, log, settings.keyRotationMs, nowMs)
    this.denials = new Denials(store, nowMs)
    this.nonces = settings.needsDpopNonce ? new DpopNonces({ store, sealer, nowMs }) : null
    this.clients = parts.hasDashboard ? withDashboard(store.oauthClients, publicUrl) : store.oauthClients
    const { keys, denials, clients } = this
    this.tokens = new AccessTokens({
      publicUrl,
      keys,
      denials,
      clients,
      people,
      documents,
    })
  }

  /** Clears the caches after a restore has replaced the database. */
  forget(): void {
    this.keys.forget()
    this.denials.forget()
    this.tokens.forget()
    this.nonces?.forget()
    this.#provider = null
  }

  /** The provider that signs with the current key. */
  async provider(): Promise<Provider> {
    const { signer } = await this.keys.current()
    if (this.#provider?.kid === signer.kid) return this.#provider.provider
    const { publicUrl, store, sealer, people, documents, settings, assertions, nowMs } = this.#parts
    const { accessTokenTtlS } = settings
    const { denials, clients } = this
    const nonceSecret = (await this.nonces?.secret()) ?? null
    // Imported on first use, because it is large.
    const { makeProvider } = await import('./provider.ts')
    const provider = makeProvider(
      {
        ...{ publicUrl, store, sealer, denials, clients, people, documents, assertions },
        ...{ accessTokenTtlS, nonceSecret, nowMs },
      },
      signer,
    )
    this.#provider = { kid: signer.kid, provider }
    return provider
  }
}
