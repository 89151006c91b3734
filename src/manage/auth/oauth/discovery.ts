import type { RequestContext } from '../../http/router.ts'
import { publicDocuments } from '../../http/front/public-document.ts'
import { SCOPES } from '../../http/access/principal.ts'
import { AUTH_METHODS } from './clients.ts'
import { REGISTRATION_PATH } from './registration.ts'
import { ID_JAG, JWT_BEARER, ROUTES, SIGNATURES } from './routes.ts'
import { type Resource, resourceUrl, wellKnownUrl } from '../../http/access/resources.ts'

/** The optional features that are on. */
interface OfferedFeatures {
  readonly hasPeople: boolean
  readonly hasRegistration: boolean
  readonly hasAssertions: boolean
}

/**
 * The discovery documents for OAuth clients. They need no database. The returned function answers `false` for
 * any other request.
 */
export function oauthDocuments(
  publicUrl: string,
  offered: OfferedFeatures,
): (ctx: RequestContext) => boolean {
  const resources = new Map<string, string>()
  const add = (url: string, document: unknown) => void resources.set(url, JSON.stringify(document))
  const server = serverMetadata(publicUrl, offered)
  add('/.well-known/oauth-authorization-server', server)
  add(pathOf(wellKnownUrl(publicUrl, 'oauth-authorization-server')), server)
  add('/.well-known/oauth-protected-resource', resourceMetadata(publicUrl, 'mcp'))
  for (const resource of ['v1', 'mcp'] as const) {
    const document = resourceMetadata(publicUrl, resource)
    add(`/.well-known/oauth-protected-resource/${resource}`, document)
    add(pathOf(wellKnownUrl(publicUrl, 'oauth-protected-resource', `/${resource}`)), document)
  }
  return publicDocuments(resources)
}

/** RFC 8414. */
function serverMetadata(publicUrl: string, { hasPeople, hasRegistration, hasAssertions }: OfferedFeatures) {
  const methods = [...AUTH_METHODS]
  const algorithms = [...SIGNATURES]
  return {
    issuer: publicUrl,
    token_endpoint: publicUrl + ROUTES.token,
    jwks_uri: publicUrl + ROUTES.jwks,
    revocation_endpoint: publicUrl + ROUTES.revocation,
    introspection_endpoint: publicUrl + ROUTES.introspection,
    ...(hasRegistration && { registration_endpoint: publicUrl + REGISTRATION_PATH }),
    ...(hasPeople && {
      authorization_endpoint: publicUrl + ROUTES.authorization,
      pushed_authorization_request_endpoint: publicUrl + ROUTES.pushed_authorization_request,
      authorization_response_iss_parameter_supported: true,
      response_modes_supported: ['query'],
    }),
    client_id_metadata_document_supported: true,
    scopes_supported: [...SCOPES, ...(hasPeople ? ['offline_access'] : [])],
    response_types_supported: hasPeople ? ['code'] : [],
    grant_types_supported: [
      'client_credentials',
      ...(hasPeople ? ['authorization_code', 'refresh_token'] : []),
      ...(hasAssertions ? [JWT_BEARER] : []),
    ],
    ...(hasAssertions && { authorization_grant_profiles_supported: [ID_JAG] }),
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: methods,
    token_endpoint_auth_signing_alg_values_supported: algorithms,
    revocation_endpoint_auth_methods_supported: methods,
    revocation_endpoint_auth_signing_alg_values_supported: algorithms,
    introspection_endpoint_auth_methods_supported: methods,
    introspection_endpoint_auth_signing_alg_values_supported: algorithms,
    dpop_signing_alg_values_supported: algorithms,
    service_documentation: `${publicUrl}/docs`,
  }
}

/** RFC 9728. */
function resourceMetadata(publicUrl: string, resource: Resource) {
  return {
    resource: resourceUrl(publicUrl, resource),
    authorization_servers: [publicUrl],
    scopes_supported: resource === 'mcp' ? SCOPES.filter((scope) => scope !== 'admin') : [...SCOPES],
    bearer_methods_supported: ['header'],
    dpop_signing_alg_values_supported: [...SIGNATURES],
    resource_name: resource === 'mcp' ? 'Gatehouse MCP' : 'Gatehouse API',
    resource_documentation: `${publicUrl}/docs`,
  }
}

function pathOf(url: string): string {
  return new URL(url).pathname
}
