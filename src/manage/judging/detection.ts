import { classifyDescribed, type DescribedVerdict } from '../../classify/verdict/classify.ts'
import {
  type DescribedRequest,
  describeRequest,
  type Told,
} from '../../classify/verdict/described-request.ts'
import type { Knowledge } from '../../classify/known/knowledge.ts'
import type { Proof } from '../../classify/verdict/proof.ts'
import type { Category, Purpose } from '../../classify/known/software.ts'
import type { Evidence, Verdict } from '../../classify/verdict/verdict.ts'
import type { HttpVersion } from '../../wire/request-head.ts'
import type { JudgedDetection } from './detections.ts'
import type { JudgingContext } from './context.ts'
import { Refusal } from '../http/refusal.ts'

/** A request as the caller describes it. An empty field counts as missing. */
export interface DetectionRequest {
  readonly user_agent?: string | null | undefined
  readonly ja4?: string | null | undefined
  readonly ja4s?: string | null | undefined
  readonly ja4h?: string | null | undefined
  readonly ja4x?: string | null | undefined
  readonly http2?: string | null | undefined
  /** In the order in which they were sent. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>> | null | undefined
  readonly method?: string | null | undefined
  readonly path?: string | null | undefined
  readonly http_version?: string | null | undefined
  readonly ip?: string | null | undefined
}

export interface Detection {
  readonly is_agent: boolean
  readonly confidence: number
  readonly agent_name: string | null
  readonly agent_category: Category | null
  readonly fingerprints: { readonly ja4: string; readonly ja4s: string; readonly ja4h: string }
  readonly agent_purpose: readonly Purpose[]
  readonly name_confidence: number
  readonly agent_id: string | null
  readonly verified: string | null
  readonly proof: Proof | null
  readonly conflicts: readonly string[]
  readonly verdict: 'agent' | 'automation' | 'human' | 'unknown'
  readonly software: { id: string; name: string; kind: 'agent' | 'tool' | 'browser' } | null
  readonly evidence: readonly Evidence[]
}

/** The parts that judging one request needs. */
export type Judging = Pick<JudgingContext, 'snapshot' | 'ja4plus' | 'nowMs'>

/**
 * The verdict that the proxy would reach from the same data. Throws a Refusal until signatures are loaded.
 */
export function detect(request: DetectionRequest, management: Judging): Detection {
  const knowledge = knowledgeOf(management)
  const described = describeRequest(toldIn(request), management.ja4plus)
  return detectionOf(described, classifyDescribed(knowledge, described, management.nowMs()))
}

export function detectionOf(
  { print }: DescribedRequest,
  { verdict, probabilities }: DescribedVerdict,
): Detection {
  const { kind, agent, software, proof, conflicts, evidence } = verdict
  return {
    is_agent: kind === 'agent',
    confidence: probabilities.agent,
    agent_name: agent?.name ?? null,
    agent_category: (agent?.category ?? null) as Category | null,
    fingerprints: {
      ja4: print.connection.ja4 ?? '',
      ja4s: print.connection.ja4s ?? '',
      ja4h: print.ja4h ?? '',
    },
    agent_purpose: (agent?.purposes ?? []) as readonly Purpose[],
    name_confidence: verdict.nameConfidence,
    agent_id: agent?.id ?? null,
    verified: proof?.method ?? null,
    proof,
    conflicts,
    verdict: kind,
    software,
    evidence: strongestFirst(evidence),
  }
}

/** The part of a detection that feedback refers to. */
export function judgedIn(
  { ja4x }: DetectionRequest,
  { verdict, agent_id: agentId, fingerprints }: Detection,
): JudgedDetection {
  const { ja4, ja4s, ja4h } = fingerprints
  return { verdict, agentId, ja4: ja4 || null, ja4s: ja4s || null, ja4h: ja4h || null, ja4x: ja4x || null }
}

export function knowledgeOf({ snapshot }: Pick<JudgingContext, 'snapshot'>): Knowledge {
  const knowledge = snapshot()?.knowledge ?? null
  if (knowledge !== null) return knowledge
  throw new Refusal('unavailable', 'the signatures are still being loaded', {
    headers: { 'Retry-After': '1' },
  })
}

/** Whether the request contains anything to judge by. Method, path, version and address alone say nothing. */
export function hasSomething(request: DetectionRequest): boolean {
  const { user_agent, ja4, ja4s, ja4h, ja4x, http2 } = request
  return !!(user_agent || ja4 || ja4s || ja4h || ja4x || http2) || hasHeaders(request)
}

function hasHeaders({ headers }: DetectionRequest): boolean {
  for (const _name in headers) return true
  return false
}

export function toldIn(request: DetectionRequest): Told {
  const { user_agent, http_version } = request
  return {
    method: request.method || null,
    target: request.path || null,
    version: http_version ? versionIn(http_version) : null,
    rawHeaders: hasHeaders(request) ? rawHeadersIn(request.headers!) : null,
    userAgent: user_agent ? asBytes(user_agent) : null,
    address: request.ip || null,
    ja4: request.ja4 || null,
    stable: null,
    ja4s: request.ja4s || null,
    ja4x: request.ja4x || null,
    ja4h: request.ja4h || null,
    http2: request.http2 || null,
    noHello: null,
    isTls: null,
  }
}

/** `null`: unknown version. */
export function versionIn(text: string): HttpVersion | null {
  return VERSIONS.get(text.toLowerCase()) ?? null
}

function rawHeadersIn(headers: Readonly<Record<string, string | readonly string[]>>): string[] {
  const raw: string[] = []
  for (const name in headers) {
    const value = headers[name]!
    if (typeof value === 'string') raw.push(name, asBytes(value))
    else for (const each of value) raw.push(name, asBytes(each))
  }
  return raw
}

/** Encodes text as a socket delivers it: one character per byte. */
function asBytes(text: string): string {
  return BEYOND_ASCII.test(text) ? Buffer.from(text).toString('latin1') : text
}

/**
 * Evidence that only names other evidence has weight 0. It comes first in a verdict, so this sorts by weight.
 */
function strongestFirst(evidence: Verdict['evidence']): readonly Evidence[] {
  if (evidence[0]?.weight !== 0) return evidence
  const known = SORTED.get(evidence)
  if (known !== undefined) return known
  const sorted = evidence.toSorted((one, other) => Math.abs(other.weight) - Math.abs(one.weight))
  SORTED.set(evidence, sorted)
  return sorted
}

/** Verdicts are cached together with their evidence, so their sorted evidence is cached as well. */
const SORTED = new WeakMap<Verdict['evidence'], readonly Evidence[]>()
const BEYOND_ASCII = /[^\0-\x7f]/
const VERSIONS: ReadonlyMap<string, HttpVersion> = new Map(
  (
    [
      ['10', ['1.0']],
      ['11', ['1.1']],
      ['20', ['2', '2.0']],
      ['30', ['3', '3.0']],
    ] as const
  ).flatMap(([version, names]) =>
    [...names.flatMap((name) => [name, `http/${name}`]), `h${version[0]}`].map((name) => [name, version]),
  ),
)
