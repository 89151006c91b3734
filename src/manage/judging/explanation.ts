import { classifyDescribed, type DescribedVerdict } from '../../classify/verdict/classify.ts'
import { Scratch } from '../../classify/verdict/scratch.ts'
import { type DescribedRequest, describeRequest } from '../../classify/verdict/described-request.ts'
import { EVIDENCE_KINDS, type EvidenceKind, EvidenceSet } from '../../classify/known/evidence.ts'
import type { Knowledge } from '../../classify/known/knowledge.ts'
import type { Evidence } from '../../classify/verdict/verdict.ts'
import { type ComparedFingerprint, type GivenFingerprint, withOwners } from './comparison.ts'
import {
  type Detection,
  type DetectionRequest,
  detectionOf,
  type Judging,
  knowledgeOf,
  toldIn,
} from './detection.ts'

interface Explanation {
  readonly detection: Detection
  /** Most likely first. */
  readonly alternatives: { verdict: 'agent' | 'automation' | 'human'; probability: number }[]
  readonly evidence: ExplainedEvidence[]
  /** The fingerprints of the request with their known owners. */
  readonly fingerprints: ComparedFingerprint[]
  /** Fields that are missing from the request and would add evidence. */
  readonly untold: { field: string; says: string }[]
}

interface ExplainedEvidence extends Evidence {
  /** The verdict without this evidence. */
  readonly without: Changed
  readonly decides: boolean
}

interface Changed {
  readonly verdict: Detection['verdict']
  readonly confidence: number
  readonly agent_name: string | null
  readonly name_confidence: number
}

/** A detection with the effect of each piece of evidence. Throws a Refusal until signatures are loaded. */
export function explain(request: DetectionRequest, management: Judging): Explanation {
  const knowledge = knowledgeOf(management)
  const nowMs = management.nowMs()
  const described = describeRequest(toldIn(request), management.ja4plus)
  const scratch = new Scratch()
  const judge = (request: DescribedRequest) => classifyDescribed(knowledge, request, nowMs, scratch)
  const judged = judge(described)
  const detection = detectionOf(described, judged)
  return {
    detection,
    alternatives: (['agent', 'automation', 'human'] as const)
      .map((verdict) => ({ verdict, probability: judged.probabilities[verdict] }))
      .sort((one, other) => other.probability - one.probability),
    evidence: detection.evidence.map((each) => {
      const without = withoutEvidence(described, each.kind, judge)
      return { ...each, without, decides: without.verdict !== detection.verdict }
    }),
    fingerprints: ownersOf(knowledge, described),
    untold: UNTOLD.filter(({ field }) => !isTold(request[field])),
  }
}

/** The verdict as if this evidence had not been given. */
function withoutEvidence(
  described: DescribedRequest,
  kind: string,
  judge: (request: DescribedRequest) => DescribedVerdict,
): Changed {
  const untold = new EvidenceSet()
  untold.addAll(described.untold)
  if (EVIDENCE_KINDS.includes(kind as EvidenceKind)) untold.add(kind as EvidenceKind)
  const { verdict, probabilities } = judge({ ...described, untold })
  return {
    verdict: verdict.kind,
    confidence: probabilities.agent,
    agent_name: verdict.agent?.name ?? null,
    name_confidence: verdict.nameConfidence,
  }
}

function ownersOf(knowledge: Knowledge, { print }: DescribedRequest): ComparedFingerprint[] {
  const { ja4, ja4s, ja4x, http2 } = print.connection
  const fingerprints = Object.entries({ ja4, ja4s, ja4h: print.ja4h, ja4x, http2 })
  return fingerprints.flatMap(([type, fingerprint]) =>
    fingerprint === null ? [] : [withOwners(knowledge, { type, fingerprint } as GivenFingerprint)],
  )
}

function isTold(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

const UNTOLD = [
  { field: 'user_agent', says: 'what it claims to be' },
  { field: 'headers', says: 'whether they match what it claims to be, and other signs of an agent' },
  { field: 'ja4', says: 'which TLS library it uses' },
  { field: 'http_version', says: 'how headers are spelled and ordered' },
  { field: 'ip', says: 'whether the address is one that the vendor of an agent publishes' },
] as const
