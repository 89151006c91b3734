import type { Ja4Type } from './fingerprint-form.ts'
import { KEY_FORM_OF, type PartsAlike } from './index/fingerprint-key.ts'

/** Sets of parts that stay equal while other parts change with a setting or a version, most telling first. */
export function stableParts(type: Ja4Type): readonly StableParts[] {
  return STABLE[type]
}

export interface StableParts {
  readonly alike: PartsAlike
  /** By number: 0 is part a. */
  readonly parts: readonly number[]
  /** The probability that two fingerprints with only these parts in common are of the same Software. */
  readonly score: number
}

/**
 * How alike two fingerprints are, by their parts. 1: they are equal. 0: they have nothing telling in common.
 * A part that is `*` counts as different.
 */
export function likenessOf(type: Ja4Type, parts: readonly string[], others: readonly string[]): number {
  const isSame = (part: number) => parts[part] === others[part] && parts[part] !== '*'
  if (parts.every((_, part) => isSame(part))) return 1
  return STABLE[type].find((stable) => stable.parts.every(isSame))?.score ?? 0
}

function stable(type: Ja4Type): readonly StableParts[] {
  const { order, orderParts, telling } = KEY_FORM_OF[type]
  return order
    .map((alike, i) => ({
      alike,
      parts: [0, 1, 2, 3].filter((part) => (orderParts[i]! & (1 << part)) !== 0),
      score: SCORES[type][alike] ?? 0,
      isTelling: telling.has(orderParts[i]!),
    }))
    .filter(({ isTelling }) => isTelling)
    .map(({ alike, parts, score }) => ({ alike, parts, score }))
    .sort((one, other) => other.score - one.score)
}

/**
 * Measured on pairs of the signatures that come with Gatehouse: how often both are of the same Software. JA4:
 * 88 pairs with both hashes, 118 with a and b, 226 with c, 1082 with b. JA4H: 118 with b. Types without such
 * pairs (JA4S, JA4X) use the values of JA4.
 */
const SCORES: Readonly<Record<Ja4Type, Partial<Record<PartsAlike, number>>>> = {
  ja4: { b_c: 0.57, a_c: 0.45, c: 0.36, a_b: 0.32, b: 0.2 },
  ja4s: { b_c: 0.57, a_c: 0.45, a_b: 0.32 },
  ja4h: { a_b_c: 0.95, a_b: 0.9, b: 0.87 },
  ja4x: { b_c: 0.57, a_c: 0.45, c: 0.36, a_b: 0.32 },
}

const STABLE: Readonly<Record<Ja4Type, readonly StableParts[]>> = {
  ja4: stable('ja4'),
  ja4s: stable('ja4s'),
  ja4h: stable('ja4h'),
  ja4x: stable('ja4x'),
}
