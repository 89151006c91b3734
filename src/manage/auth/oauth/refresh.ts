import { errors, type KoaContextWithOIDC } from 'oidc-provider'
import type { Scope } from '../../http/access/principal.ts'

/**
 * oidc-provider looks for what is asked for after it has used a refresh token up, and whoever has asked wrongly would have
 * none any more: here the same is found out before. Throws what it would. `scopes`: what can be had at all.
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
  return new errors.CustomOIDCProviderError('invalid_scope', 'none of the scopes asked for can be had')
}
