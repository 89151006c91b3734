import type Koa from 'koa'
import { PAGE_HEADERS } from '../http/front/html.ts'
import { type DocsPlaces, docsPage } from './docs/page.ts'
import { PASSKEY_SCRIPT, PASSKEY_SCRIPT_PATH } from '../auth/people/passkey-script.ts'
import { STYLE } from './docs/style.ts'
import { pathIn } from '../http/front/address.ts'
import { beginDocument } from '../http/front/public-document.ts'
import { openApiDocument } from '../api/openapi.ts'
import { V1, V2 } from '../api/operations.ts'
import type { RequestContext } from '../http/router.ts'
import type { ApiVersion } from '../http/version.ts'

/**
 * Answers with the documentation of the API, to any client and without a key. `false`: not one of its paths.
 */
export function documents(publicUrl: string): (ctx: RequestContext) => boolean {
  const resources = new Map<string, PublicResource>([
    ...documentsOf(V1, '/docs', { page: '/docs/v2', about: 'The beta, /v2' }, publicUrl),
    ...documentsOf(V2, '/docs/v2', { page: '/docs', about: 'The stable version, /v1' }, publicUrl),
    [
      '/docs/style.css',
      (ctx) => {
        ctx.body = STYLE
        ctx.set('Content-Type', 'text/css; charset=utf-8')
      },
    ],
    [
      PASSKEY_SCRIPT_PATH,
      (ctx) => {
        ctx.body = PASSKEY_SCRIPT
        ctx.set('Content-Type', 'text/javascript; charset=utf-8')
      },
    ],
  ])
  return (ctx) => {
    const resource = resources.get(pathIn(ctx.req.url!))
    if (resource === undefined) return false
    beginDocument(ctx)
    resource(ctx)
    return true
  }
}

type PublicResource = (ctx: Koa.ParameterizedContext) => void

/** The OpenAPI document for programs, and a page for people at `page`. */
function documentsOf(
  version: ApiVersion,
  page: string,
  other: DocsPlaces['other'],
  publicUrl: string,
): readonly (readonly [path: string, resource: PublicResource])[] {
  const document = once(() => openApiDocument(version, publicUrl))
  const text = once(() => JSON.stringify(document()))
  const file = `${version.prefix}/openapi.json`
  return [
    [
      file,
      (ctx) => {
        ctx.body = text()
        ctx.set('Content-Type', 'application/openapi+json;version=3.1')
        // The document has no secrets, and tools in web pages read it.
        ctx.set('Access-Control-Allow-Origin', '*')
      },
    ],
    [
      page,
      (ctx) => {
        const wanted = new URLSearchParams(ctx.querystring).get('q') ?? ''
        ctx.body = docsPage(document(), { page, file, other }, wanted.slice(0, FILTER_LENGTH_MAX))
        ctx.set({ 'Content-Type': 'text/html; charset=utf-8', ...PAGE_HEADERS })
      },
    ],
  ]
}

/** Made for the first reader, because it takes longer than the rest of a start. */
function once<Value>(make: () => Value): () => Value {
  let made: Value | null = null
  return () => (made ??= make())
}

const FILTER_LENGTH_MAX = 100
