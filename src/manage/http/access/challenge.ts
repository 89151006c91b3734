import { wellKnownUrl } from './resources.ts'

/**
 * The value of `WWW-Authenticate` (RFC 6750 §3, RFC 9728 §5.1). `error` is empty if the client sent no
 * credential. `scopes`: the scopes to request, if they are known.
 */
export function challenge(
  publicUrl: string,
  error: string,
  resource: 'v1' | 'mcp' = 'v1',
  scopes: readonly string[] = [],
): string {
  const scopePart = scopes.length === 0 ? '' : `scope="${scopes.join(' ')}", `
  return `Bearer realm="gatehouse", ${errorPart(error)}${scopePart}${metadataPart(publicUrl, resource)}`
}

/**
 * For a client that must prove possession of a key (RFC 9449 §7.1). `error` says what is wrong with the proof
 * or the token.
 */
export function dpopChallenge(
  publicUrl: string,
  error: 'invalid_token' | 'invalid_dpop_proof' | 'use_dpop_nonce',
  algorithms: readonly string[],
  resource: 'v1' | 'mcp',
): string {
  return `DPoP realm="gatehouse", ${errorPart(error)}algs="${algorithms.join(' ')}", ${metadataPart(publicUrl, resource)}`
}

function errorPart(error: string): string {
  return error === '' ? '' : `error="${error}", `
}

function metadataPart(publicUrl: string, resource: 'v1' | 'mcp'): string {
  return `resource_metadata="${wellKnownUrl(publicUrl, 'oauth-protected-resource', `/${resource}`)}"`
}
