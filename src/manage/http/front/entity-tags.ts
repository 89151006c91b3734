import { createHash } from 'node:crypto'

/** A strong entity tag of these bytes. */
export function tagOf(bytes: Buffer): string {
  return `"${createHash('sha256').update(bytes).digest('base64url').slice(0, TAG_LENGTH)}"`
}

/** Whether `If-None-Match` names the tag, with the weak comparison of RFC 9110 §13.1.2. */
export function hasTag(header: string, tag: string): boolean {
  return header.trim() === '*' || tagsIn(header).some((each) => opaque(each) === opaque(tag))
}

/**
 * Removes the coding suffixes from the tags in `If-Match`: a change applies to the resource, whichever
 * representation the client read.
 */
export function withoutCodings(header: string): string {
  return header.slice(0, HEADER_LENGTH_MAX).replace(CODING_SUFFIX, '"')
}

function opaque(tag: string): string {
  return tag.replace(/^W\//, '')
}

function tagsIn(header: string): readonly string[] {
  return header.slice(0, HEADER_LENGTH_MAX).match(TAGS) ?? []
}

const CODING_SUFFIX = /-(?:br|gzip)"/g
const TAGS = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g
/** 144 bits. */
const TAG_LENGTH = 24
const HEADER_LENGTH_MAX = 8_192
