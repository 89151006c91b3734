import { JA4_TYPES } from '../../classify/known/fingerprint-form.ts'
import type { Software } from '../../classify/known/software.ts'
import type { FingerprintOwners } from '../../store/catalogue/catalogue-facts.ts'
import type { KnownSignature } from '../../store/catalogue/known-signature.ts'
import type { FeedbackCount } from '../../store/catalogue/feedback.ts'
import type { JudgingContext } from './context.ts'

/** One reason for a judgement, in the same form as the evidence of a detection. */
export interface Reason {
  readonly kind: string
  /** In words. */
  readonly detail: string
  /** Natural logarithm of the odds. */
  readonly weight: number
}

/** The reasons for each signature, strongest first: the parts of its confidence, and other known facts. */
export async function signatureEvidence(
  signatures: readonly KnownSignature[],
  { store, snapshot }: Pick<JudgingContext, 'store' | 'snapshot'>,
): Promise<Reason[][]> {
  const owners = new Map<string, FingerprintOwners>()
  const told = new Map<string, readonly FeedbackCount[]>()
  for (const type of JA4_TYPES) {
    const ofType = signatures.filter((each) => each.type === type)
    const values = [...new Set(ofType.map(({ value }) => value))]
    for (const [value, each] of await store.catalogueFacts.owners(type, values))
      owners.set(`${type} ${value}`, each)
    const said = Map.groupBy(await store.feedback.toldOf(type, values), ({ value }) => value)
    for (const [value, each] of said) told.set(`${type} ${value}`, each)
  }
  const deciding = decidingIn(snapshot()?.knowledge?.list ?? [], signatures)
  return signatures.map((signature) => {
    const key = `${signature.type} ${signature.value}`
    const isDeciding = deciding.has(`${key} ${signature.software?.id}`)
    return reasonsFor(signature, owners.get(key) ?? NO_OWNERS, told.get(key) ?? [], isDeciding)
  })
}

/** The log odds of a confidence, clamped so that nothing is certain. */
export function logOdds(confidence: number): number {
  const sane = Math.min(Math.max(confidence, DOUBT), 1 - DOUBT)
  return Math.log(sane / (1 - sane))
}

export function strongestFirst(reasons: readonly Reason[]): Reason[] {
  return reasons
    .map((each) => ({ ...each, weight: Math.round(each.weight * 1e4) / 1e4 || 0 }))
    .sort((one, other) => Math.abs(other.weight) - Math.abs(one.weight))
}

/** `1 request`; `1,000 requests`. */
export function counted(count: number, what: string): string {
  return `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

function reasonsFor(
  signature: KnownSignature,
  owners: FingerprintOwners,
  told: readonly FeedbackCount[],
  isDeciding: boolean,
): Reason[] {
  const reasons = [
    ...measured(signature),
    ...shared(signature, owners),
    ...accepted(signature),
    ...(isDeciding ? [decides(signature)] : []),
    ...seenLive(signature.requestsSeen, signature.lastSeenMs),
    ...reported(signature, told),
  ]
  const sum = reasons.reduce((total, { weight }) => total + weight, 0)
  return strongestFirst([...reasons, ...held(signature, sum)])
}

/** The share of the signature's own observations in `confidenceOf`. */
function measured({ source, software, observations, provenance }: KnownSignature): Reason[] {
  if (provenance === null) return []
  const how =
    observations > 0
      ? `measured on ${observations === 1 ? 'one connection or request' : `${observations.toLocaleString('en')} connections or requests`}`
      : source === 'submitted'
        ? 'submitted'
        : 'published, and not measured'
  const weight = software === null ? 0 : Math.log(observations + 1)
  return [{ kind: 'measured', detail: `${how}: ${provenance || 'source unknown'}`, weight }]
}

/** The share of all other owners in `confidenceOf`. Unknown software counts as one more owner. */
function shared(
  { status, software, observations }: KnownSignature,
  { most, count, observed }: FingerprintOwners,
): Reason[] {
  const isOwner = status === 'active' && software !== null
  const others = count - Number(isOwner)
  if (others <= 0) return []
  const said = most.filter(({ id }) => id !== software?.id).slice(0, SAID_MAX)
  const names = said.map((each) => `${each.name} (${each.observations.toLocaleString('en')})`).join(', ')
  const more = others > said.length ? ` and ${others - said.length} more` : ''
  const weight = isOwner ? -Math.log(1 + observed - (observations + 1)) : 0
  return [{ kind: 'shared', detail: `also measured on other software: ${names}${more}`, weight }]
}

function accepted({ source, status, provenance, firstSeenMs }: KnownSignature): Reason[] {
  if (source !== 'submitted' || status !== 'active' || provenance === null) return []
  return [{ kind: 'accepted', detail: `accepted on ${dayOf(firstSeenMs)}: ${provenance}`, weight: 0 }]
}

function decides({ software }: KnownSignature): Reason {
  return { kind: 'decides', detail: `requests with it are classified as ${software?.name}`, weight: 0 }
}

export function seenLive(requests: number, lastSeenMs: number | null): Reason[] {
  if (requests === 0 || lastSeenMs === null) return []
  const detail = `${counted(requests, 'request')} on live traffic, the last on ${dayOf(lastSeenMs)}`
  return [{ kind: 'seen-live', detail, weight: 0 }]
}

/** Feedback from operators on requests with this fingerprint. It does not change the confidence. */
function reported({ software }: KnownSignature, told: readonly FeedbackCount[]): Reason[] {
  const sum = (some: readonly FeedbackCount[]) => some.reduce((total, { count }) => total + count, 0)
  const isOther = ({ softwareId }: FeedbackCount) =>
    software !== null && softwareId !== null && softwareId !== software.id
  const agents = told.filter((each) => each.told === 'agent')
  const kinds = [
    ['reported-human', sum(told.filter((each) => each.told === 'human')), 'a person’s'],
    ['reported-other', sum(agents.filter(isOther)), 'another agent’s'],
    ['reported-agent', sum(agents.filter((each) => !isOther(each))), 'an agent’s'],
  ] as const
  return kinds.flatMap(([kind, count, whose]) => {
    const detail = `operators say of ${counted(count, 'request')} with it: ${whose}`
    return count === 0 ? [] : [{ kind, detail, weight: 0 }]
  })
}

/** A signature that judges nothing keeps its stored confidence: this adds the difference to `sum`. */
function held({ status, confidence }: KnownSignature, sum: number): Reason[] {
  if (status === 'active') return []
  return [{ ...HELD[status], weight: logOdds(confidence) - sum }]
}

/** The keys of signatures that an administrator marked as decisive for their agent. */
function decidingIn(
  list: readonly Software[],
  signatures: readonly KnownSignature[],
): ReadonlySet<string | undefined> {
  const ids = new Set(signatures.map(({ software }) => software?.id))
  const theirs = list.filter(({ id, kind }) => kind === 'agent' && ids.has(id))
  return new Set(
    theirs.flatMap(({ id, signatures: own }) =>
      own.flatMap((each) =>
        'isDecisive' in each && each.isDecisive ? `${each.type} ${each.value} ${id}` : [],
      ),
    ),
  )
}

const HELD = {
  trial: { kind: 'on-trial', detail: 'it is only counted and changes no verdict' },
  unknown: { kind: 'unknown', detail: 'no known software has it' },
  retired: { kind: 'retired', detail: 'it was rejected or withdrawn' },
} as const
const NO_OWNERS: FingerprintOwners = { most: [], count: 0, observed: 0 }
const SAID_MAX = 4
/** Confidence is at least this and at most 1 minus this. */
const DOUBT = 1e-6
