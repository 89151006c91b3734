import { ALL_APPS, type AppScope } from '../../apps/app-scope.ts'
import type { ProofMethod } from '../../classify/verdict/proof.ts'
import { parseSoftware, type Software } from '../../classify/known/software.ts'
import type { FingerprintCount, SoftwareFacts } from '../../store/catalogue/catalogue-facts.ts'
import { counted, logOdds, type Reason, seenLive, strongestFirst } from './evidence.ts'
import type { JudgingContext } from './context.ts'

/** A way for others to verify the agent's identity. */
interface VerificationSource {
  readonly method: ProofMethod
  readonly source: string
}

/** The evidence for each agent id, strongest first. */
export async function agentEvidence(
  ids: readonly string[],
  { store }: Pick<JudgingContext, 'store'>,
  apps: AppScope,
): Promise<ReadonlyMap<string, Reason[]>> {
  const facts = await store.catalogueFacts.software(ids, ids.length === 1 ? ALONE_MAX : LISTED_MAX)
  return new Map(
    [...facts].map(([id, each]) => [id, reasonsFor(apps === ALL_APPS ? each : { ...each, requests: 0 })]),
  )
}

export function verificationSources({ verification }: Software): readonly VerificationSource[] {
  const { signatureAgent, rangesUrl, ranges, reverseDns } = verification
  const published = rangesUrl ?? ranges?.source ?? null
  return [
    ...(signatureAgent === null ? [] : [{ method: 'web-bot-auth' as const, source: signatureAgent }]),
    ...(published === null ? [] : [{ method: 'ip-range' as const, source: published }]),
    ...reverseDns.map((source) => ({ method: 'reverse-dns' as const, source })),
  ]
}

function reasonsFor({ document, requests, lastSeenMs, fingerprints }: SoftwareFacts): Reason[] {
  const software = parseSoftware(JSON.parse(document))
  return strongestFirst([
    ...fingerprints.map(known),
    ...goesBy(software),
    ...verifiable(software),
    ...seenLive(requests, lastSeenMs),
  ])
}

function known({ type, count, isAll, confidenceMax }: FingerprintCount): Reason {
  const sure = `the surest with a confidence of ${confidenceMax.toFixed(3)}`
  const many = counted(count, 'fingerprint')
  const detail = `${many}${isAll ? '' : ' or more'} of the type ${type}, ${sure}`
  return { kind: 'fingerprints', detail, weight: logOdds(confidenceMax) }
}

function goesBy({ signatures }: Software): Reason[] {
  const texts = signatures.flatMap((each) => (each.type === 'user-agent' ? each.text : []))
  const detail = `goes by ${listed([...new Set(texts)])} in User-Agents`
  return texts.length === 0 ? [] : [{ kind: 'goes-by', detail, weight: 0 }]
}

function verifiable(software: Software): Reason[] {
  const ways = verificationSources(software).map(({ method, source }) => `${method} (${source})`)
  const detail = `can be verified by ${listed(ways)}`
  return ways.length === 0 ? [] : [{ kind: 'verifiable', detail, weight: 0 }]
}

function listed(texts: readonly string[]): string {
  const said = texts.slice(0, SAID_MAX).join(', ')
  return texts.length > SAID_MAX ? `${said} and ${texts.length - SAID_MAX} more` : said
}

const SAID_MAX = 5
/** Limits for the fingerprints counted per type: a single agent may have a million. */
const LISTED_MAX = 50
const ALONE_MAX = 1_000
