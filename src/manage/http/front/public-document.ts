import type { RequestContext } from '../router.ts'
import { pathIn } from './address.ts'
import { Refusal } from '../refusal.ts'

/**
 * Answers with the JSON document at a path, to any client and without the database. `false`: not one of them.
 */
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
  // The document has no secrets, and clients in web pages read it before they have a credential.
  ctx.set('Access-Control-Allow-Origin', '*')
}

/** Marks the answer as read-only and the same for every client. Throws a Refusal at any other method. */
export function beginDocument(ctx: RequestContext, methods = READS): void {
  ctx.state.operation = 'document'
  if (!methods.includes(ctx.method))
    throw new Refusal('method_not_allowed', `allowed methods: ${methods.join(', ')}`, {
      headers: { Allow: methods.join(', ') },
    })
  ctx.state.isPublic = true
}

const READS: readonly string[] = ['GET', 'HEAD']
