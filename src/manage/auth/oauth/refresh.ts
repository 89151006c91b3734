import { errors, type KoaContextWithOIDC } from 'oidc-provider'
import type { Scope } from '../../http/access/principal.ts'

/**
 * oidc-provider checks the requested scope only after it has used up the refresh token, so an invalid request
 * would cost the client its token. This makes the same checks first and throws the same errors. `scopes`: all
 * that are available.
 */
export function checkRefresh({ oidc }: KoaContextWithOIDC, scopes: readonly Scope[]): void {
  const { RefreshToken: token, Grant: grant } = oidc.entities
  const [resource] = [oidc.params?.['resource'] ?? token?.resource].flat()
  if (token === undefined || grant === undefined) return
  if (typeof resource !== 'string' || !token.resourceIndicators.has(resource))
    throw new errors.InvalidTarget()
  const asked = oidc.params?.['scope'] ? oidc.requestParamScopes : token.scopes
  const had = scopes.filter((scope) => asked.has(scope))
  if (grant.getResourceScopeFiltered(resource, had) === '') throw noScope()
}

export function noScope(): errors.OIDCProviderError {
  return new errors.CustomOIDCProviderError('invalid_scope', 'none of the requested scopes is available')
}
