import type { OAuthClient } from '../../../store/people/oauth-clients.ts'
import { Refusal } from '../../http/refusal.ts'
import type { Plan, Scope } from '../../http/access/principal.ts'
import { checkClient, type GrantType } from './clients.ts'

/**
 * Clients that are known by the address of a document of theirs, which somebody else keeps (client-id metadata documents,
 * Agent Identity Documents). Whoever implements it fetches them with every guard there is, and remembers them: nothing
 * here fetches by itself.
 */
export interface ClientDocuments {
  /** `null`: there is none at this address, or it cannot be used. */
  find(url: string): Promise<ClientDocument | null>
  /** What an administrator lets it do for itself: asked for twice a second, never fetched. `null`: nothing. */
  standing(url: string): Promise<Standing | null>
}

export interface ClientDocument {
  readonly name: string | null
  /** A JWK Set of its public keys; `null`: it has none, and asks people only. */
  readonly jwks: Readonly<Record<string, unknown>> | null
  /** Where codes go; none: it asks nobody. */
  readonly redirectUris: readonly string[]
}

export interface Standing {
  readonly name: string | null
  readonly scopes: readonly Scope[]
  readonly plan: Plan
}

/** As a client beside the others: `null` where it goes against what is asked of those. */
export function clientOfDocument(
  url: string,
  { name, jwks, redirectUris }: ClientDocument,
  standing: Standing | null,
): OAuthClient | null {
  const grantTypes: readonly GrantType[] = [
    ...(jwks === null ? [] : ['client_credentials' as const]),
    ...(redirectUris.length === 0 ? [] : ['authorization_code' as const, 'refresh_token' as const]),
  ]
  if (grantTypes.length === 0) return null
  const authMethod = jwks === null ? 'none' : 'private_key_jwt'
  const client = {
    ...standingClient(url, name, standing),
    jwks,
    redirectUris,
    grantTypes,
    authMethod,
  } as const
  try {
    checkClient(client)
    return client
  } catch (error) {
    if (error instanceof Refusal) return null
    throw error
  }
}

/** What there is to say of it without its document. */
export function standingClient(url: string, name: string | null, standing: Standing | null): OAuthClient {
  return {
    id: url,
    name: standing?.name ?? name ?? url,
    ...{ secretHash: null, authMethod: 'none', grantTypes: [], redirectUris: [], jwks: null },
    scopes: standing?.scopes ?? [],
    plan: standing?.plan ?? 'standard',
    origin: 'document',
    createdAtMs: 0,
  }
}

/** Ids of other clients are no addresses. */
export function isDocumentUrl(id: string): boolean {
  return DOCUMENT_URL.test(id)
}

/** Whether it may be http is for whoever fetches. */
const DOCUMENT_URL = /^https?:\/\/[\x21-\x7e]{1,2000}$/
