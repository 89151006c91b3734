import { tagOf } from './front/entity-tags.ts'
import { Refusal } from './refusal.ts'

/**
 * Throws a Refusal unless `If-Match` names what is there now (RFC 9110 §13.1.1): whoever replaces a whole thing has to
 * say which one. `*` is whatever is there.
 */
export function requireMatch(ifMatch: string | null, etag: string): void {
  if (ifMatch === null)
    throw new Refusal(
      'precondition_required',
      'send If-Match with the ETag of what this is to take the place of',
    )
  checkMatch(ifMatch, etag)
}

/** The same for who may leave it out. */
export function checkMatch(ifMatch: string | null, etag: string): void {
  if (ifMatch === null || ifMatch.trim() === '*') return
  // A weak tag (W/) is never the same as a strong one.
  if (ifMatch.split(',').some((tag) => tag.trim() === etag)) return
  throw changedMeanwhile(etag)
}

/** The one that a GET of this has. */
export function etagOf(body: unknown): string {
  return tagOf(Buffer.from(JSON.stringify(body)))
}

function changedMeanwhile(etag: string): Refusal {
  return new Refusal('precondition_failed', 'it is not what If-Match says any more: read it again', {
    headers: { ETag: etag },
  })
}
