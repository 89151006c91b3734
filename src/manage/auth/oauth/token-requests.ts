import type { KoaContextWithOIDC } from 'oidc-provider'
import type { OAuth } from './oauth.ts'
import { ownMetadata } from './clients.ts'
import { DENIED_MS } from './denials.ts'

/** The dependencies of revocation and introspection. */
interface TokenRequests {
  readonly publicUrl: string
  readonly oauth: Pick<OAuth, 'tokens' | 'denials' | 'revocations'>
  nowMs(): number
}

/** RFC 7009. A token that is expired or belongs to another client is ignored and not an error. */
export async function revoke(ctx: KoaContextWithOIDC, { oauth, nowMs }: TokenRequests): Promise<string> {
  const checked = await oauth.tokens.check(tokenIn(ctx), nowMs())
  if (checked.kind !== 'good' || checked.token.clientId !== ctx.oidc.client?.clientId) return ''
  oauth.revocations.count(checked.token.clientId, nowMs())
  await oauth.denials.add('token', checked.token.id, undefined, nowMs() + DENIED_MS)
  return ''
}

/** RFC 7662: a client sees its own tokens; a client with `admin` sees all. */
export async function introspected(
  ctx: KoaContextWithOIDC,
  { publicUrl, oauth, nowMs }: TokenRequests,
): Promise<Readonly<Record<string, unknown>>> {
  const checked = await oauth.tokens.check(tokenIn(ctx), nowMs())
  const client = ctx.oidc.client
  if (checked.kind !== 'good' || client === undefined) return { active: false }
  const { token } = checked
  const isAdministrators = ownMetadata(client).scopes.includes('admin')
  if (token.clientId !== client.clientId && !isAdministrators) return { active: false }
  return {
    active: true,
    iss: publicUrl,
    sub: token.principal.id,
    aud: token.audience,
    client_id: token.clientId,
    scope: [...token.principal.scopes].join(' '),
    jti: token.id,
    iat: token.issuedAtS,
    exp: token.expiresAtS,
    token_type: token.jkt === null ? 'Bearer' : 'DPoP',
    ...(token.jkt === null ? {} : { cnf: { jkt: token.jkt } }),
  }
}

function tokenIn(ctx: KoaContextWithOIDC): string {
  return String(ctx.oidc.params?.['token'] ?? '')
}
