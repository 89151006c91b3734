import { tagOf } from './front/entity-tags.ts'
import { Refusal } from './refusal.ts'

/**
 * Throws a Refusal unless `If-Match` names the current entity tag (RFC 9110 §13.1.1). A client that replaces
 * a whole resource must name the version that it replaces. `*` matches any version.
 */
export function requireMatch(ifMatch: string | null, etag: string): void {
  if (ifMatch === null)
    throw new Refusal('precondition_required', 'send If-Match with the ETag of the version to replace')
  checkMatch(ifMatch, etag)
}

/** Like `requireMatch`, but `If-Match` is optional. */
export function checkMatch(ifMatch: string | null, etag: string): void {
  if (ifMatch === null || ifMatch.trim() === '*') return
  // A weak tag (W/) never matches a strong one.
  if (ifMatch.split(',').some((tag) => tag.trim() === etag)) return
  throw changedMeanwhile(etag)
}

/** The entity tag that a GET answers with. */
export function etagOf(body: unknown): string {
  return tagOf(Buffer.from(JSON.stringify(body)))
}

/**
 * An entity tag in two halves: what people change, which `If-Match` is about, and the whole body, of which a reader
 * must not miss a change. `first`: the tag of the first half.
 */
export function halvedTag(first: string, body: unknown): string {
  return `${first.slice(0, -1)}.${etagOf(body).slice(1)}`
}

/** The part of `If-Match` that is about what people change. */
export function firstHalf(ifMatch: string | null): string | null {
  return ifMatch === null ? null : ifMatch.replace(SECOND_HALF, '"')
}

function changedMeanwhile(etag: string): Refusal {
  return new Refusal('precondition_failed', 'the resource no longer matches If-Match: read it again', {
    headers: { ETag: etag },
  })
}

const SECOND_HALF = /\.[\w-]+"/g
