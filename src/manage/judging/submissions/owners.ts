import type { Ja4Type } from '../../../classify/known/fingerprint-form.ts'
import type { Knowledge } from '../../../classify/known/knowledge.ts'
import { MOST, type OwnerShare, sharesOf } from '../../../classify/known/owners.ts'
import type { Likeness } from '../../../classify/known/index/signature-index.ts'

/** The known owners of a fingerprint, or of the largest part of it that is known. */
export interface KnownOwners {
  readonly likeness: Likeness
  /** Most observed first. */
  readonly shares: readonly OwnerShare[]
}

/** The ways in which a fingerprint of this type can match others, most significant first. */
export function likenessesOf(type: Ja4Type): readonly Likeness[] {
  return LIKENESSES[type]
}

/** Empty if no software matches in these parts. */
export function ownersBy(
  { list, fingerprints }: Knowledge,
  type: Ja4Type,
  value: string,
  likeness: Likeness,
): readonly [KnownOwners] | readonly [] {
  const found = fingerprints.find(type, value, likeness)
  return found.length === 0 ? [] : [{ likeness, shares: sharesOf(list, found) }]
}

/** Whether the match covers the whole client: only its destination and its cookies may differ. */
export function isWhole(type: Ja4Type, likeness: Likeness): boolean {
  return WHOLE[type].includes(likeness)
}

/**
 * Whether ordinary browsers are among the owners, beyond a measuring error. Automated browsers and imitators
 * share the browser's fingerprint, so they are left out.
 */
export function areBrowsers({ shares }: KnownOwners): boolean {
  const telling = shares.filter(
    ({ software: { category, isImitator } }) => category !== 'browser-agent' && !isImitator,
  )
  const ofBrowsers = telling.filter(({ software }) => software.kind === 'browser')
  return sumOf(ofBrowsers) > (1 - MOST) * sumOf(telling)
}

function sumOf(shares: readonly OwnerShare[]): number {
  return shares.reduce((sum, { share }) => sum + share, 0)
}

/** Part a of a JA4 alone differs if a client sends no SNI or offers other protocols. */
const LIKENESSES: Readonly<Record<Ja4Type, readonly Likeness[]>> = {
  ja4: ['exact', 'b_c', 'a_c', 'a_b', 'c', 'b'],
  ja4s: ['exact', 'a_c', 'b_c'],
  ja4h: ['exact', 'a_b_c', 'a_b', 'b'],
  ja4x: ['exact', 'b_c', 'a_c', 'a_b'],
}
const WHOLE: Readonly<Record<Ja4Type, readonly Likeness[]>> = {
  ja4: ['exact', 'b_c'],
  ja4s: ['exact'],
  ja4h: ['exact', 'a_b_c', 'a_b'],
  ja4x: ['exact'],
}
