import type { RequestContext } from '../router.ts'

/**
 * Lets pages of these origins use the API. Cookies grant no access to it, so credentials are never allowed.
 * Any other origin learns only that it is not on the list. Returns `true` if the request was a preflight,
 * which is then answered.
 */
export function cors(origins: readonly string[]): (ctx: RequestContext) => boolean {
  const allowed = new Set(origins)
  return (ctx) => {
    if (allowed.size === 0) return false
    ctx.vary('Origin')
    const origin = ctx.get('Origin')
    if (!allowed.has(origin)) return false
    ctx.set('Access-Control-Allow-Origin', origin)
    if (ctx.method !== 'OPTIONS' || ctx.get('Access-Control-Request-Method') === '') {
      ctx.set('Access-Control-Expose-Headers', EXPOSED)
      return false
    }
    ctx.set({
      'Access-Control-Allow-Methods': METHODS,
      'Access-Control-Allow-Headers': ASKED,
      'Access-Control-Max-Age': String(PREFLIGHT_S),
    })
    ctx.status = 204
    ctx.state.operation = 'preflight'
    return true
  }
}

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const ASKED =
  'Authorization, Content-Type, Content-Encoding, DPoP, Idempotency-Key, If-Match, If-None-Match, X-Request-Id, Content-Digest, Signature, Signature-Input, Signature-Agent, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID, A2A-Version, A2A-Extensions'
const EXPOSED = [
  ...['ETag', 'Link', 'Location', 'RateLimit', 'RateLimit-Policy', 'Retry-After', 'X-Request-Id'],
  ...['Idempotency-Replayed', 'WWW-Authenticate', 'X-API-Stability', 'Mcp-Session-Id', 'DPoP-Nonce'],
].join(', ')
/** Chromium caches a preflight for at most two hours. */
const PREFLIGHT_S = 7_200
