import { appScopeOf, sharedScope } from '../../../apps/app-scope.ts'
import jwt from 'jsonwebtoken'
import type { KeyObject } from 'node:crypto'
import type { OAuthClient } from '../../../store/people/oauth-clients.ts'
import { PLANS, type Plan, type Principal, SCOPES, type Scope } from '../../http/access/principal.ts'
import { type ClientDocuments, isDocumentUrl, standingClient } from './client-documents.ts'
import type { KnownClients } from './known-clients.ts'
import { appsWithPeople, scopesOf, scopesWithin, scopesWithPeople } from './clients.ts'
import type { Denials } from './denials.ts'
import type { People, Person } from './people.ts'
import { RESOURCES, resourceUrl } from '../../http/access/resources.ts'
import type { TokenSigningKeys } from './signing-keys.ts'

/** The verified claims of one of our access tokens (RFC 9068). */
export interface AccessToken {
  readonly principal: Principal
  readonly audience: string
  readonly id: string
  readonly clientId: string
  /** `null`: the client acts for itself. */
  readonly personId: string | null
  readonly grant: string | null
  readonly kid: string
  readonly scope: string
  readonly issuedAtS: number
  readonly expiresAtS: number
  /** The thumbprint of the key the token is bound to (RFC 9449). `null`: a bearer token. */
  readonly jkt: string | null
}

type CheckedToken =
  | { readonly kind: 'good'; readonly token: AccessToken }
  | { readonly kind: 'expired' }
  /** Not our token, malformed, denied, or its client or person no longer exists. */
  | { readonly kind: 'bad' }

interface AccessTokenParts {
  readonly publicUrl: string
  readonly keys: TokenSigningKeys
  readonly denials: Denials
  readonly clients: KnownClients
  readonly people: People | null
  readonly documents: ClientDocuments
}

/** Verifies our own access tokens. Caches a verified token until it expires or is denied. */
export class AccessTokens {
  readonly #parts: AccessTokenParts
  readonly #audiences: [string, ...string[]]
  readonly #known = new Map<string, CachedToken>()
  readonly #clients = new Map<string, OAuthClient>()

  constructor(parts: AccessTokenParts) {
    this.#parts = parts
    const [first, ...others] = RESOURCES.map((resource) => resourceUrl(parts.publicUrl, resource))
    this.#audiences = [first!, ...others]
  }

  /** Synchronous. `null`: the answer needs a read, call `check`. */
  known(text: string, nowMs: number): CheckedToken | null {
    const known = this.#known.get(text)
    if (known === undefined || !this.#parts.denials.isFresh(nowMs)) return null
    const { token } = known
    if (token.expiresAtS * 1000 <= nowMs) return EXPIRED
    if (this.#isDenied(token)) return BAD
    if (known.isAskedAgain && Math.abs(nowMs - known.readAtMs) >= ASKED_AGAIN_MS) return null
    return known.good
  }

  /** Throws a Fault if the database cannot be read. */
  async check(text: string, nowMs: number): Promise<CheckedToken> {
    const { denials } = this.#parts
    if (!denials.isFresh(nowMs)) await denials.read()
    const claims = this.#known.get(text)?.claims ?? (await this.#claims(text, nowMs))
    if (claims === 'expired') return EXPIRED
    if (claims === null) return BAD
    if (claims.exp * 1000 <= nowMs) return EXPIRED
    const token = await this.#tokenOf(claims)
    if (token === null || this.#isDenied(token)) {
      this.#known.delete(text)
      return BAD
    }
    if (this.#known.size >= KNOWN_MAX) this.#known.delete(this.#known.keys().next().value!)
    const good = { kind: 'good', token } as const
    const isAskedAgain = token.personId !== null || isDocumentUrl(token.clientId)
    this.#known.set(text, { claims, token, good, isAskedAgain, readAtMs: nowMs })
    return good
  }

  /** Clears the caches after a restore has replaced the database. */
  forget(): void {
    this.#known.clear()
    this.#clients.clear()
  }

  async #claims(text: string, nowMs: number): Promise<Claims | 'expired' | null> {
    const kid = kidIn(text)
    if (kid === null) return null
    const { keys } = this.#parts
    const key = keys.known(kid) ?? (await keys.byKid(kid))
    return key === null ? null : this.#verified(text, kid, key, nowMs)
  }

  #verified(text: string, kid: string, key: KeyObject, nowMs: number): Claims | 'expired' | null {
    try {
      const claims = jwt.verify(text, key, {
        algorithms: ['ES256'],
        issuer: this.#parts.publicUrl,
        audience: this.#audiences,
        clockTimestamp: Math.floor(nowMs / 1000),
      })
      return claimsIn(claims, kid, nowMs)
    } catch (error) {
      return error instanceof jwt.TokenExpiredError ? 'expired' : null
    }
  }

  /** `null`: the client or the person no longer exists. */
  async #tokenOf(claims: Claims): Promise<AccessToken | null> {
    const isPersons = claims.sub !== claims.client_id
    const client = isDocumentUrl(claims.client_id)
      ? await this.#documentClient(claims.client_id, isPersons)
      : await this.#client(claims.client_id)
    if (client === null) return null
    const person = isPersons ? await this.#parts.people?.find(claims.sub) : null
    if (isPersons && person == null) return null
    return {
      principal: principalOf(claims, client, person ?? null),
      audience: claims.aud,
      id: claims.jti,
      clientId: claims.client_id,
      personId: isPersons ? claims.sub : null,
      grant: claims.grant,
      kid: claims.kid,
      scope: claims.scope,
      jkt: claims.jkt,
      issuedAtS: claims.iat,
      expiresAtS: claims.exp,
    }
  }

  /** Clients never change, so they are cached. A deleted client is in the denials. */
  async #client(id: string): Promise<OAuthClient | null> {
    const known = this.#clients.get(id)
    if (known !== undefined) return known
    const found = await this.#parts.clients.byId(id)
    if (found === null) return null
    if (this.#clients.size >= CLIENTS_MAX) this.#clients.delete(this.#clients.keys().next().value!)
    this.#clients.set(id, found)
    return found
  }

  /** The document was checked when the token was issued. Now only the administrator's trust entry counts. */
  async #documentClient(url: string, isPersons: boolean): Promise<OAuthClient | null> {
    const standing = await this.#parts.documents.standing(url)
    return standing === null && !isPersons ? null : standingClient(url, null, standing)
  }

  #isDenied({ id, grant, clientId, personId, kid }: AccessToken): boolean {
    const { denials } = this.#parts
    return (
      denials.has('token', id) ||
      denials.has('client', clientId) ||
      denials.has('key', kid) ||
      (grant !== null && denials.has('grant', grant)) ||
      (personId !== null && denials.has('person', personId))
    )
  }
}

/** Whether the text can be one of our tokens: three parts, at most 4,096 characters. */
export function looksLikeJwt(text: string): boolean {
  return text.length <= LENGTH_MAX && JWT.test(text)
}

interface CachedToken {
  readonly claims: Claims
  readonly token: AccessToken
  readonly good: CheckedToken
  /** The access of its person or client can change, so it is read again every 500 ms. */
  readonly isAskedAgain: boolean
  readonly readAtMs: number
}

interface Claims {
  readonly sub: string
  readonly client_id: string
  readonly aud: string
  readonly jti: string
  readonly scope: string
  readonly iat: number
  readonly exp: number
  readonly grant: string | null
  readonly jkt: string | null
  readonly kid: string
}

/** Accepts exactly three header members, so that a token cannot bring its own key (jwk, jku, x5c). */
function kidIn(text: string): string | null {
  try {
    const head: unknown = JSON.parse(Buffer.from(text.slice(0, text.indexOf('.')), 'base64url').toString())
    const { alg, typ, kid, ...others } = head as Record<string, unknown>
    const isOurs = alg === 'ES256' && typ === 'at+jwt' && Object.keys(others).length === 0
    return isOurs && typeof kid === 'string' && KID.test(kid) ? kid : null
  } catch {
    return null
  }
}

/** We have signed this token. Another form means another kind of token, or another version. */
function claimsIn(claims: unknown, kid: string, nowMs: number): Claims | null {
  if (typeof claims !== 'object' || claims === null) return null
  const { sub, client_id, aud, jti, scope, iat, exp, grant, cnf } = claims as Record<string, unknown>
  if (![sub, client_id, aud, jti, scope].every((each) => typeof each === 'string')) return null
  if (typeof iat !== 'number' || typeof exp !== 'number' || iat * 1000 > nowMs + SKEW_MS) return null
  if (grant !== undefined && typeof grant !== 'string') return null
  const jkt = (cnf as { jkt?: unknown } | undefined)?.jkt
  if (cnf !== undefined && typeof jkt !== 'string') return null
  const texts = { sub, client_id, aud, jti, scope } as Pick<
    Claims,
    'sub' | 'client_id' | 'aud' | 'jti' | 'scope'
  >
  return { ...texts, iat, exp, grant: grant ?? null, jkt: jkt === undefined ? null : (jkt as string), kid }
}

function principalOf(claims: Claims, client: OAuthClient, person: Person | null): Principal {
  const asked = claims.scope.split(' ')
  const mayBe = (person === null ? [scopesOf(client)] : [scopesWithPeople(client), [...person.scopes]]).map(
    scopesWithin,
  )
  const has = (scope: Scope) => asked.includes(scope) && mayBe.every((scopes) => scopes.includes(scope))
  return {
    id: claims.sub,
    name: person?.name ?? client.name,
    scopes: new Set(SCOPES.filter(has)),
    apps:
      person === null
        ? appScopeOf(client.apps)
        : sharedScope(appScopeOf(appsWithPeople(client)), person.apps),
    plan: person?.plan ?? planOf(client),
    expiresAtMs: claims.exp * 1000,
  }
}

function planOf({ plan }: OAuthClient): Plan {
  return PLANS.find((each) => each === plan) ?? 'free'
}

const EXPIRED: CheckedToken = { kind: 'expired' }
const BAD: CheckedToken = { kind: 'bad' }
/** About 10 MB. */
const KNOWN_MAX = 10_000
const CLIENTS_MAX = 1_000
const ASKED_AGAIN_MS = 500
/** The clocks of processes on one database can differ by this much. */
const SKEW_MS = 15_000
const LENGTH_MAX = 4_096
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/
const KID = /^[\w-]{43}$/
