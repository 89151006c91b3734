import type { Ja4Type } from '../../../classify/known/fingerprint-form.ts'
import type { Knowledge } from '../../../classify/known/knowledge.ts'
import { MOST, type Share, sharesOf } from '../../../classify/known/owners.ts'
import type { Likeness } from '../../../classify/known/index/signature-index.ts'

/** Who is known to have a fingerprint, or as much of it as anybody has. */
export interface KnownOwners {
  readonly likeness: Likeness
  /** Most observed first. */
  readonly shares: readonly Share[]
}

/** In how much of a fingerprint it can be like others, the most telling first. */
export function likenessesOf(type: Ja4Type): readonly Likeness[] {
  return LIKENESSES[type]
}

/** None: nobody has so much of it. */
export function ownersBy(
  { list, fingerprints }: Knowledge,
  type: Ja4Type,
  value: string,
  likeness: Likeness,
): readonly [KnownOwners] | readonly [] {
  const found = fingerprints.find(type, value, likeness)
  return found.length === 0 ? [] : [{ likeness, shares: sharesOf(list, found) }]
}

/** It is all of it, but for what comes and goes with one client: where it goes to, and whose cookies it has. */
export function isWhole(type: Ja4Type, likeness: Likeness): boolean {
  return WHOLE[type].includes(likeness)
}

/**
 * People's browsers are among those who have it, by more than a mistake. Automated browsers have their browser's, and
 * imitators want to: neither says whose it is.
 */
export function areBrowsers({ shares }: KnownOwners): boolean {
  const telling = shares.filter(
    ({ software: { category, isImitator } }) => category !== 'browser-agent' && !isImitator,
  )
  const ofBrowsers = telling.filter(({ software }) => software.kind === 'browser')
  return sumOf(ofBrowsers) > (1 - MOST) * sumOf(telling)
}

function sumOf(shares: readonly Share[]): number {
  return shares.reduce((sum, { share }) => sum + share, 0)
}

/** A JA4 differs in part a alone where a client names no host, or offers other protocols. */
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
