import { recall } from '../../classify/verdict/classify.ts'
import { conflictsIn } from '../../classify/verdict/proof-evidence.ts'
import type { Knowledge } from '../../classify/known/knowledge.ts'
import { type Category, PURPOSES, type Purpose, type SoftwareKind } from '../../classify/known/software.ts'
import type { Evidence, Verdict } from '../../classify/verdict/verdict.ts'
import { proofIn } from '../../plane/sighting-document.ts'
import { POLICY_LAYERS } from '../../policy/action.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { timeOf } from '../http/schemas.ts'
import type { Detection } from './detection.ts'
import { signatureText } from '../intake/signature-account.ts'

/** Names of software, by id. */
export type SoftwareById = ReadonlyMap<
  string,
  {
    readonly name: string
    readonly kind: SoftwareKind
    readonly category: string | null
    readonly purposes: readonly Purpose[]
  }
>

/**
 * The answer that `/detect` would have given for this request, as far as a Sighting records it. `knowledge`
 * supplies the weights of the evidence; without it every weight is 0.
 */
export function detectionIn(
  sighting: Sighting,
  names: SoftwareById,
  knowledge: Knowledge | null,
): Detection & { readonly request_id: string } {
  const { agent, software, verified } = sighting
  const verdict = sighting.verdict as Verdict['kind']
  const program = software === null ? undefined : names.get(software)
  const isAgent = verdict === 'agent'
  const { evidence, confidence } = weighed(sighting, verdict, knowledge)
  return {
    is_agent: isAgent,
    confidence,
    agent_name: agent === null ? null : nameOf(agent, names),
    agent_category: sighting.category as Category | null,
    fingerprints: { ja4: sighting.ja4 ?? '', ja4s: sighting.ja4s ?? '', ja4h: sighting.ja4h ?? '' },
    agent_purpose: sighting.purposes.filter((each) => PURPOSES.some((known) => known === each)) as Purpose[],
    name_confidence: sighting.nameConfidence,
    agent_id: agent,
    verified,
    proof: proofIn(sighting),
    conflicts: conflictsIn(evidence),
    verdict,
    software: program === undefined ? null : { id: software!, name: program.name, kind: program.kind },
    evidence,
    request_id: sighting.id,
  }
}

/** A request and the action taken, as a Sighting records them. Without cookies, credentials or query. */
export function outlineOf(sighting: Sighting) {
  const { id, proxy, app, verdict, confidence, nameConfidence, rule, action, done } = sighting
  return {
    id,
    seen_at: timeOf(sighting.seenAtMs),
    proxy,
    app,
    ...requestOf(sighting),
    user_agent: sighting.userAgent,
    verdict,
    confidence,
    name_confidence: nameConfidence,
    rule,
    layer: POLICY_LAYERS.find((each) => each === sighting.layer) ?? null,
    action: done,
    dry_run: sighting.dryRun ? action : null,
  }
}

export function requestOf({ method, host, path, address }: Sighting) {
  return { method, host, path, address }
}

export function fingerprintsOf({ ja4, ja4s, ja4h, ja4x }: Sighting) {
  return { ja4: ja4 ?? '', ja4s: ja4s ?? '', ja4h: ja4h ?? '', ja4x: ja4x ?? '' }
}

/** The ordering key of events about a request: its JA4, else its agent, else `otherwise`. */
export function subjectOf({ ja4, agent }: Pick<Sighting, 'ja4' | 'agent'>, otherwise: string): string {
  if (ja4 !== null) return `ja4 ${ja4}`
  return agent === null ? otherwise : `agent ${agent}`
}

export function nameOf(id: string, names: SoftwareById): string {
  return names.get(id)?.name ?? id
}

function weighed(
  sighting: Sighting,
  verdict: Verdict['kind'],
  knowledge: Knowledge | null,
): { readonly evidence: readonly Evidence[]; readonly confidence: number } {
  const { confidence } = sighting
  if (knowledge === null) {
    const unweighed = sighting.evidence.map((kind) => ({
      kind,
      detail: kind.replaceAll('-', ' '),
      weight: 0,
    }))
    return { evidence: unweighed, confidence: verdict === 'agent' ? confidence : 0 }
  }
  const recalled = recall(knowledge, sighting.evidence, verdict)
  const { agent } = recalled.probabilities
  const signed = signatureText(sighting)
  const evidence = recalled.evidence.map((each) =>
    signed !== null && OF_SIGNATURE.has(each.kind) ? { ...each, detail: signed } : each,
  )
  return { evidence, confidence: verdict === 'agent' ? confidence : agent }
}

const OF_SIGNATURE: ReadonlySet<string> = new Set([
  'signature-proven',
  'signature-failed',
  'signature-unchecked',
])
