import { errors, type KoaContextWithOIDC, type Provider } from 'oidc-provider'
import { digestOf } from '../../../store/engine/sealed.ts'
import type { Store } from '../../../store/store.ts'
import { SCOPES, type Scope } from '../../http/access/principal.ts'
import { resourceUrl } from '../../http/access/resources.ts'
import { type Assertion, AssertionFault, type Assertions } from './assertions.ts'
import { ownMetadata, scopesWithin } from './clients.ts'
import type { People, Person } from './people.ts'
import { JWT_BEARER } from './routes.ts'

interface AssertionGrantParts {
  readonly publicUrl: string
  readonly assertions: Assertions
  readonly store: Store
  readonly people: People
  readonly accessTokenTtlS: number
}

/**
 * Gives a client a token for the MCP endpoint in exchange for an identity assertion (RFC 7523 with ID-JAG), without a
 * consent of the person here: the identity provider has decided.
 */
export function addAssertionGrant(provider: Provider, parts: AssertionGrantParts): void {
  const parameters = ['assertion', 'scope', 'resource']
  provider.registerGrantType(JWT_BEARER, (ctx) => answer(provider, ctx, parts), parameters)
}

async function answer(
  provider: Provider,
  ctx: KoaContextWithOIDC,
  parts: AssertionGrantParts,
): Promise<void> {
  const client = ctx.oidc.client!
  const { assertion: text, resource = resourceUrl(parts.publicUrl, 'mcp'), scope: wanted } = ctx.oidc.params!
  if (typeof text !== 'string') throw new errors.InvalidRequest("missing required parameter 'assertion'")
  if (ctx.get('DPoP') !== '')
    throw new errors.InvalidRequest('tokens for an assertion are not bound to a key: send no DPoP proof')
  const assertion = await read(text, client.clientId, parts)
  const { resources } = assertion
  if (resource !== resourceUrl(parts.publicUrl, 'mcp') || resources?.includes(resource) === false)
    throw new errors.InvalidTarget()
  const person = await personOf(assertion, parts)
  const asked = typeof wanted === 'string' && wanted !== '' ? wanted.split(' ') : null
  const scope = scopesOf(assertion, person, ownMetadata(client).withPeople, asked).join(' ')
  if (scope === '')
    throw new errors.CustomOIDCProviderError('invalid_scope', 'none of the requested scopes is available')
  // The last check, so that a mistake of the client does not use it up.
  await useUp(assertion, parts)
  const properties = { accountId: person.id, client, gty: 'jwt_bearer', scope }
  const token = new provider.AccessToken(properties as never)
  token.resourceServer = new provider.ResourceServer(resource, {
    scope,
    audience: resource,
    accessTokenFormat: 'jwt',
    accessTokenTTL: parts.accessTokenTtlS,
    jwt: { sign: { alg: 'ES256' } },
  })
  ctx.oidc.entity('AccessToken', token)
  const value = await token.save()
  ctx.body = { access_token: value, expires_in: token.expiration, scope, token_type: token.tokenType }
}

async function read(text: string, clientId: string, { assertions }: AssertionGrantParts): Promise<Assertion> {
  try {
    return await assertions.read(text, clientId)
  } catch (error) {
    throw error instanceof AssertionFault ? invalid(error.message) : error
  }
}

/** The account that has signed in with this subject of the issuer, or was bound to it by an administrator. */
async function personOf(
  { issuer, subject }: Assertion,
  { store, people }: AssertionGrantParts,
): Promise<Person> {
  const user = await store.users.byOpenid({ issuer, subject })
  const person = user === null ? null : await people.find(user.id)
  if (person === null) throw invalid('the subject of the assertion has no account here')
  return person
}

/** No more than the assertion, the person and the client have. */
function scopesOf(
  { scopes }: Assertion,
  person: Person,
  ofClient: readonly Scope[],
  asked: readonly string[] | null,
): readonly Scope[] {
  const mayBe = [scopesWithin(ofClient), scopesWithin([...person.scopes]), scopes ?? SCOPES, asked ?? SCOPES]
  return SCOPES.filter(
    (scope) => scope !== 'admin' && mayBe.every((each) => each.some((one) => one === scope)),
  )
}

async function useUp({ issuer, id, expiresAtMs }: Assertion, { store }: AssertionGrantParts): Promise<void> {
  const isFirst = await store.replays.isFirst(`assertion ${digestOf('assertion', issuer, id)}`, expiresAtMs)
  if (!isFirst) throw invalid('the assertion was already used')
}

function invalid(why: string): errors.OIDCProviderError {
  return new errors.CustomOIDCProviderError('invalid_grant', why)
}
