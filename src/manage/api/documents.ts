import type Koa from 'koa'
import { docsPage } from '../docs/page.ts'
import { STYLE } from '../docs/style.ts'
import { Refusal } from '../refusal.ts'
import { openApiDocument } from './openapi.ts'
import { OPERATIONS } from './operations.ts'
import type { RequestState } from './router.ts'

/** What says how the API is used: for everybody, without a key, as discovery is. */
export function documents(publicUrl: string): Koa.Middleware<RequestState> {
  const document = openApiDocument(OPERATIONS, publicUrl)
  const text = JSON.stringify(document)
  const resources = new Map<string, (ctx: Koa.ParameterizedContext) => void>([
    [
      '/v1/openapi.json',
      (ctx) => {
        ctx.body = text
        ctx.set('Content-Type', 'application/openapi+json;version=3.1')
        // Nothing in it is secret, and tools in pages read it.
        ctx.set('Access-Control-Allow-Origin', '*')
      },
    ],
    [
      '/docs',
      (ctx) => {
        const wanted = new URLSearchParams(ctx.querystring).get('q') ?? ''
        ctx.body = docsPage(document, wanted.slice(0, FILTER_LENGTH_MAX))
        ctx.set({ 'Content-Type': 'text/html; charset=utf-8', ...PAGE_HEADERS })
      },
    ],
    [
      '/docs/style.css',
      (ctx) => {
        ctx.body = STYLE
        ctx.set('Content-Type', 'text/css; charset=utf-8')
      },
    ],
  ])
  return async (ctx, next) => {
    // As sent: Koa's own `path` throws on what is no URL.
    const resource = resources.get(ctx.url.split('?', 1)[0]!)
    if (resource === undefined) return next()
    ctx.state.operation = 'document'
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
      throw new Refusal('method_not_allowed', 'this can only be read', { headers: { Allow: 'GET, HEAD' } })
    ctx.state.isPublic = true
    resource(ctx)
  }
}

/** No script, nothing from elsewhere, in nobody's frame. */
export const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
}
const FILTER_LENGTH_MAX = 100
