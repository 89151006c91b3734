import { type Ja4Type, JA4_TYPES, partsOfFingerprint } from '../../classify/known/fingerprint-form.ts'
import type { Knowledge } from '../../classify/known/knowledge.ts'
import { type OwnerShare, sharesOf } from '../../classify/known/owners.ts'
import { isFingerprint } from '../../classify/known/signature.ts'
import type { Nearest } from '../../classify/known/index/signature-index.ts'

type ComparedType = (typeof COMPARED_TYPES)[number]

export interface GivenFingerprint {
  readonly type: ComparedType
  readonly fingerprint: string
}

/** What two fingerprints say about the clients that have them. */
type Relation =
  /** Equal in every part. */
  | 'identical'
  /** The same program: only the parts that vary between sessions or requests differ. */
  | 'same_client'
  /** Built with one library, in different versions or with different settings. */
  | 'same_library'
  | 'different'
  /** The fingerprints have different types, or the owners of at least one are unknown. */
  | 'unknown'

interface Comparison {
  readonly verdict: Relation
  readonly why: string
  readonly fingerprints: ComparedFingerprint[]
  readonly comparisons: ComparedPair[]
}

export interface ComparedFingerprint extends GivenFingerprint {
  /** How much of the fingerprint matches a known one; `null`: nothing matches. */
  readonly known: Nearest['likeness'] | null
  readonly owners: Owner[]
}

interface Owner {
  readonly id: string
  readonly name: string
  readonly kind: 'agent' | 'tool' | 'browser'
  readonly share: number
}

interface ComparedPair {
  /** Indexes into `fingerprints`. */
  readonly first: number
  readonly second: number
  readonly relation: Relation
  readonly why: string
  readonly agreeing: string[]
  readonly differing: string[]
  /** The ids of software that is known to have both. */
  readonly common_owners: string[]
}

/** Whether the fingerprints belong to one client. The verdict is that of the pair that differs most. */
export function compare(knowledge: Knowledge, given: readonly GivenFingerprint[]): Comparison {
  const fingerprints = given.map((each) => withOwners(knowledge, each))
  const comparisons = fingerprints.flatMap((one, first) =>
    fingerprints.slice(first + 1).map((other, i) => pairOf(one, other, first, first + 1 + i)),
  )
  const worst = comparisons.reduce((one, other) =>
    ORDER.indexOf(other.relation) > ORDER.indexOf(one.relation) ? other : one,
  )
  return { verdict: worst.relation, why: worst.why, fingerprints, comparisons }
}

/** The fingerprint type that this text has the form of; `null`: no type matches. */
export function typeOf(text: string): ComparedType | null {
  return COMPARED_TYPES.find((type) => isFingerprint(type, text) && !text.includes('*')) ?? null
}

/** Adds the known owners of a fingerprint. */
export function withOwners({ list, fingerprints }: Knowledge, given: GivenFingerprint): ComparedFingerprint {
  const nearest = fingerprints.nearest(given.type, given.fingerprint)
  if (nearest === null) return { ...given, known: null, owners: [] }
  const owners = sharesOf(list, nearest.candidates).slice(0, OWNERS_MAX).map(ownerOf)
  return { ...given, known: nearest.likeness, owners }
}

function ownerOf({ software: { id, name, kind }, share }: OwnerShare): Owner {
  return { id, name, kind, share: Math.round(share * 10_000) / 10_000 }
}

function pairOf(
  one: ComparedFingerprint,
  other: ComparedFingerprint,
  first: number,
  second: number,
): ComparedPair {
  const common = one.owners.filter(({ id }) => other.owners.some((each) => each.id === id))
  const places = { first, second, common_owners: common.map(({ id }) => id) }
  if (one.type !== other.type) {
    return { ...places, ...acrossTypes(one, other, common), agreeing: [], differing: [] }
  }
  const [parts, others] = [partsOf(one), partsOf(other)]
  const names = parts.map((_, i) => LETTERS[i]!)
  const agreeing = names.filter((_, i) => parts[i] === others[i])
  const differing = names.filter((_, i) => parts[i] !== others[i])
  if (differing.length === 0)
    return { ...places, relation: 'identical', why: 'they are the same', agreeing, differing }
  const isOneOwner = one.known === 'exact' && other.known === 'exact' && common.length > 0
  return { ...places, ...WITHIN[one.type](parts, others, isOneOwner), agreeing, differing }
}

type JudgedPair = Pick<ComparedPair, 'relation' | 'why'>

/** Fingerprints of two types (TLS and HTTP, for example) can only be compared by their known owners. */
function acrossTypes(
  one: ComparedFingerprint,
  other: ComparedFingerprint,
  common: readonly Owner[],
): JudgedPair {
  if (one.known !== 'exact' || other.known !== 'exact')
    return { relation: 'unknown', why: 'they have two types, and not both have a known owner' }
  if (common.length > 0) return { relation: 'same_client', why: `${common[0]!.name} is known to have both` }
  return { relation: 'different', why: 'they have two types and no known owner in common' }
}

function hello(one: readonly string[], other: readonly string[], isOneOwner: boolean): JudgedPair {
  const isAlike = withoutCounts(one[0]!) === withoutCounts(other[0]!) && one[1] === other[1]
  if (isAlike && isOneOwner)
    return {
      relation: 'same_client',
      why: 'the extensions differ as they do when a session is resumed, and both are known of one program',
    }
  if (one[1] === other[1] && one[2] === other[2])
    return {
      relation: 'same_client',
      why: 'the hashes are the same: it asked for an address and not a name, over another transport, or offered other protocols',
    }
  if (one[1] === other[1])
    return {
      relation: 'same_library',
      why: 'the ciphers are the same and the extensions are not: another version, or a session that was resumed',
    }
  if (one[2] === other[2])
    return { relation: 'same_library', why: 'the extensions are the same and the ciphers are not' }
  return isOneOwner
    ? {
        relation: 'same_library',
        why: 'both are known of one program, in other versions or set up otherwise',
      }
    : { relation: 'different', why: 'neither ciphers nor extensions are the same' }
}

function answer(one: readonly string[], other: readonly string[]): JudgedPair {
  if (one[2] === other[2] || one[0] === other[0])
    return { relation: 'same_library', why: 'the server answered with other parts of what it has' }
  return { relation: 'different', why: 'the server answered otherwise' }
}

function request(one: readonly string[], other: readonly string[], isOneOwner: boolean): JudgedPair {
  if (one[1] === other[1])
    return {
      relation: 'same_client',
      why: 'the headers are the same, in the same order; only the method, the language or the cookies differ',
    }
  return isOneOwner
    ? { relation: 'same_client', why: 'both are known of one program, for requests of several kinds' }
    : { relation: 'different', why: 'the headers are others, or in another order' }
}

function certificate(one: readonly string[], other: readonly string[]): JudgedPair {
  if (one[2] === other[2] && one[2] !== NO_EXTENSIONS)
    return {
      relation: 'same_library',
      why: 'the certificates have the same extensions: one program makes such',
    }
  if (one[0] === other[0])
    return { relation: 'same_library', why: 'the certificates name their issuer in the same way' }
  return { relation: 'different', why: 'the certificates have nothing in common' }
}

function openingOf(): JudgedPair {
  return { relation: 'different', why: 'HTTP/2 is opened otherwise' }
}

/** Part a without the extension count, which varies between sessions. */
function withoutCounts(a: string): string {
  return a.slice(0, 6) + a.slice(8)
}

function partsOf({ type, fingerprint }: GivenFingerprint): readonly string[] {
  if (type === 'http2') return fingerprint.split('|')
  if (type === 'stable') return fingerprint.slice(STABLE_PREFIX.length).split('-')
  return partsOfFingerprint(type as Ja4Type, fingerprint)
}

export const COMPARED_TYPES = [...JA4_TYPES, 'stable', 'http2'] as const
const WITHIN: Readonly<
  Record<ComparedType, (one: readonly string[], other: readonly string[], isOneOwner: boolean) => JudgedPair>
> = {
  ja4: hello,
  stable: hello,
  ja4s: answer,
  ja4h: request,
  ja4x: certificate,
  http2: openingOf,
}
/** From most alike to most different: the later one decides. */
const ORDER: readonly Relation[] = ['identical', 'same_client', 'same_library', 'unknown', 'different']
const LETTERS = ['a', 'b', 'c', 'd']
const STABLE_PREFIX = 'gs1-'
const NO_EXTENSIONS = '000000000000'
const OWNERS_MAX = 20
