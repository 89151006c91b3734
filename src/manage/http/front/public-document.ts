import type { RequestContext } from '../router.ts'
import { pathIn } from './address.ts'
import { Refusal } from '../refusal.ts'

/** JSON at these paths, for everybody, without the database. `false`: it is none of that. */
export function publicDocuments(documents: ReadonlyMap<string, string>): (ctx: RequestContext) => boolean {
  return (ctx) => {
    const text = documents.get(pathIn(ctx.req.url!))
    if (text === undefined) return false
    sayPublicDocument(ctx, text)
    return true
  }
}

export function sayPublicDocument(ctx: RequestContext, text: string, methods = READS): void {
  beginDocument(ctx, methods)
  ctx.body = text
  ctx.set('Content-Type', 'application/json; charset=utf-8')
  // Nothing in it is secret, and clients in pages read it before they have anything to say who they are.
  ctx.set('Access-Control-Allow-Origin', '*')
}

/** What is read, and the same for everybody. Throws a Refusal at who wants to do something else with it. */
export function beginDocument(ctx: RequestContext, methods = READS): void {
  ctx.state.operation = 'document'
  if (!methods.includes(ctx.method))
    throw new Refusal('method_not_allowed', 'this can only be read', {
      headers: { Allow: methods.join(', ') },
    })
  ctx.state.isPublic = true
}

const READS: readonly string[] = ['GET', 'HEAD']
