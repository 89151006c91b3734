import jwt from 'jsonwebtoken'
import type { KeyObject } from 'node:crypto'
import type { OAuthClient } from '../../../store/people/oauth-clients.ts'
import { PLANS, type Plan, type Principal, SCOPES, type Scope } from '../../http/access/principal.ts'
import { type ClientDocuments, isDocumentUrl, standingClient } from './client-documents.ts'
import type { KnownClients } from './known-clients.ts'
import { scopesOf, scopesWithin, scopesWithPeople } from './clients.ts'
import type { Denials } from './denials.ts'
import type { People, Person } from './people.ts'
import { RESOURCES, resourceUrl } from '../../http/access/resources.ts'
import type { SigningKeys } from './signing-keys.ts'

/** What a token of ours says, checked (RFC 9068). */
export interface AccessToken {
  readonly principal: Principal
  readonly audience: string
  readonly id: string
  readonly clientId: string
  /** `null`: the client's own. */
  readonly personId: string | null
  readonly grant: string | null
  readonly kid: string
  readonly scope: string
  readonly issuedAtS: number
  readonly expiresAtS: number
  /** The thumbprint of the key that it is bound to (RFC 9449); `null`: whoever has it may use it. */
  readonly jkt: string | null
}

export type Checked =
  | { readonly kind: 'good'; readonly token: AccessToken }
  | { readonly kind: 'expired' }
  /** Not ours, not well formed, denied, or of somebody who is gone. */
  | { readonly kind: 'bad' }

export interface AccessTokenParts {
  readonly publicUrl: string
  readonly keys: SigningKeys
  readonly denials: Denials
  readonly clients: KnownClients
  readonly people: People | null
  readonly documents: ClientDocuments
}

/** Checks the access tokens made here. What was checked before is remembered until it expires, or is denied. */
export class AccessTokens {
  readonly #parts: AccessTokenParts
  readonly #audiences: [string, ...string[]]
  readonly #known = new Map<string, Known>()
  readonly #clients = new Map<string, OAuthClient>()

  constructor(parts: AccessTokenParts) {
    this.#parts = parts
    const [first, ...others] = RESOURCES.map((resource) => resourceUrl(parts.publicUrl, resource))
    this.#audiences = [first!, ...others]
  }

  /** Without waiting: `null` where something has to be read first, see `check`. */
  known(text: string, nowMs: number): Checked | null {
    const known = this.#known.get(text)
    if (known === undefined || !this.#parts.denials.isFresh(nowMs)) return null
    const { token } = known
    if (token.expiresAtS * 1000 <= nowMs) return EXPIRED
    if (this.#isDenied(token)) return BAD
    if (known.isAskedAgain && Math.abs(nowMs - known.readAtMs) >= ASKED_AGAIN_MS) return null
    return known.good
  }

  /** Throws a Fault where the database cannot say whether it is good. */
  async check(text: string, nowMs: number): Promise<Checked> {
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

  /** The database has another content. */
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

  /** `null`: its client or its person is gone. */
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
      ...{ kid: claims.kid, scope: claims.scope, jkt: claims.jkt },
      ...{ issuedAtS: claims.iat, expiresAtS: claims.exp },
    }
  }

  /** Nothing of a client is ever changed; one that is deleted is denied. */
  async #client(id: string): Promise<OAuthClient | null> {
    const known = this.#clients.get(id)
    if (known !== undefined) return known
    const found = await this.#parts.clients.byId(id)
    if (found === null) return null
    if (this.#clients.size >= CLIENTS_MAX) this.#clients.delete(this.#clients.keys().next().value!)
    this.#clients.set(id, found)
    return found
  }

  /** Its document was there when the token was made; what counts now is what an administrator says of it. */
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

/** Whether it can be one of ours: three parts, of a sane length. */
export function looksLikeJwt(text: string): boolean {
  return text.length <= LENGTH_MAX && JWT.test(text)
}

interface Known {
  readonly claims: Claims
  readonly token: AccessToken
  readonly good: Checked
  /** What its person, or its client, may do can change. */
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

/** The head of a token of ours has three members and no others: none that brings a key along, or says where one is. */
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

/** Signed by us: what does not have this form is another kind of token, from another version perhaps. */
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
    plan: person?.plan ?? planOf(client),
    expiresAtMs: claims.exp * 1000,
  }
}

function planOf({ plan }: OAuthClient): Plan {
  return PLANS.find((each) => each === plan) ?? 'free'
}

const EXPIRED: Checked = { kind: 'expired' }
const BAD: Checked = { kind: 'bad' }
/** Some ten megabytes. */
const KNOWN_MAX = 10_000
const CLIENTS_MAX = 1_000
const ASKED_AGAIN_MS = 500
/** Clocks of processes on one database. */
const SKEW_MS = 15_000
const LENGTH_MAX = 4_096
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/
const KID = /^[\w-]{43}$/
