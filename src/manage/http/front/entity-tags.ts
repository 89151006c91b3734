import { createHash } from 'node:crypto'

/** A strong tag of these bytes. */
export function tagOf(bytes: Buffer): string {
  return `"${createHash('sha256').update(bytes).digest('base64url').slice(0, TAG_LENGTH)}"`
}

/** Whether `If-None-Match` names it: compared weakly, as RFC 9110 §13.1.2 has it. */
export function hasTag(header: string, tag: string): boolean {
  return header.trim() === '*' || tagsIn(header).some((each) => opaque(each) === opaque(tag))
}

/**
 * What `If-Match` names, less what tells one coding from another: what is changed is the thing, whichever of its
 * representations was read.
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
