import type { AppList } from '../../../apps/app-scope.ts'
import type { OAuthClient } from '../../../store/people/oauth-clients.ts'
import { Refusal } from '../../http/refusal.ts'
import type { Plan, Scope } from '../../http/access/principal.ts'
import { checkClient, type GrantType } from './clients.ts'

/**
 * Clients identified by the URL of a document on another server (client-id metadata documents, Agent Identity
 * Documents). The implementation fetches the documents with all its guards and caches them; this module does
 * not fetch.
 */
export interface ClientDocuments {
  /** `null`: no document at this URL, or it cannot be used. */
  find(url: string): Promise<ClientDocument | null>
  /**
   * The access that an administrator gave the client itself. Read twice a second, never fetched. `null`:
   * none.
   */
  standing(url: string): Promise<Standing | null>
}

export interface ClientDocument {
  readonly name: string | null
  /** A JWK Set of its public keys. `null`: it has no keys and can only act for people. */
  readonly jwks: Readonly<Record<string, unknown>> | null
  /** The redirect URIs. Empty: it cannot ask people. */
  readonly redirectUris: readonly string[]
}

export interface Standing {
  readonly name: string | null
  readonly scopes: readonly Scope[]
  readonly apps: AppList
  readonly plan: Plan
}

/** Converts a document to a client. `null`: the document breaks the rules for clients. */
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

/** The part of the client that is known without its document. */
export function standingClient(url: string, name: string | null, standing: Standing | null): OAuthClient {
  return {
    id: url,
    name: standing?.name ?? name ?? url,
    secretHash: null,
    authMethod: 'none',
    grantTypes: [],
    redirectUris: [],
    jwks: null,
    scopes: standing?.scopes ?? [],
    apps: standing?.apps ?? [],
    plan: standing?.plan ?? 'standard',
    origin: 'document',
    createdAtMs: 0,
  }
}

/** Ids of other clients are not URLs. */
export function isDocumentUrl(id: string): boolean {
  return DOCUMENT_URL.test(id)
}

/** The code that fetches decides whether http is allowed. */
const DOCUMENT_URL = /^https?:\/\/[\x21-\x7e]{1,2000}$/
