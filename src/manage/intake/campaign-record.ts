import * as z from 'zod'
import { REQUEST_KIND } from '../../classify/campaign/seen-request.ts'
import type { Campaign } from '../../classify/campaign/finder.ts'
import { isCampaignId, MEMBERS_MAX } from '../../classify/campaign/members.ts'
import { type Sighting, SIGHTING_TEXT_MAX } from '../../plane/sighting.ts'
import { clientHash, type SeenClient } from './sighting-intake.ts'

const count = z.number().min(0).max(Number.MAX_SAFE_INTEGER)
const text = z.string().max(SIGHTING_TEXT_MAX).nullable()
const hash = z.int().min(0).max(0xffff_ffff)

/** A campaign as it is stored. */
const campaignRecord = z.object({
  id: z.string().refine(isCampaignId),
  salt: hash,
  cohort: hash,
  program: hash,
  hostHash: hash,
  foundAtMs: count,
  lastSeenMs: count,
  requests: count,
  /** Hashes of networks, and when each was last seen. */
  members: z.array(z.tuple([hash, count])).max(MEMBERS_MAX),
  signs: z.object({
    addresses: count,
    people: count,
    pagesMin: count,
    coverage: z.object({ targets: count, distinct: count }),
    variation: z.number().nullable(),
  }),
  /** One of its requests. */
  host: text,
  software: text,
  userAgent: text,
  stable: text,
  http2: text,
  ja4: text,
})
/** What is known of a program besides its hash. */
export const programFacts = campaignRecord.pick({
  ...{ software: true, userAgent: true, stable: true, http2: true, ja4: true },
})
export type CampaignRecord = z.output<typeof campaignRecord>

export type ProgramFacts = z.output<typeof programFacts>
export const NO_FACTS: ProgramFacts = {
  software: null,
  userAgent: null,
  stable: null,
  http2: null,
  ja4: null,
}

export function recordOf(
  { id, cohort, program, host, foundAtMs, lastSeenMs, requests, members, signs }: Campaign,
  salt: number,
  known: ProgramFacts & Pick<CampaignRecord, 'host'>,
): CampaignRecord {
  const hashes = { salt, cohort, program, hostHash: host }
  return { id, ...hashes, foundAtMs, lastSeenMs, requests, members: [...members], signs, ...known }
}

/** A time in the future would keep it, and its members, for as long. */
export function campaignOf(record: CampaignRecord, nowMs: number): Campaign {
  const { id, cohort, program, hostHash: host, foundAtMs, requests, signs } = record
  const members = new Map(record.members.map(([network, seenMs]) => [network, Math.min(seenMs, nowMs)]))
  const lastSeenMs = Math.min(record.lastSeenMs, nowMs)
  return { id, cohort, program, host, foundAtMs, lastSeenMs, requests, members, signs }
}

/** `null` if it is damaged. */
export function parseCampaign(document: string): CampaignRecord | null {
  try {
    return campaignRecord.parse(JSON.parse(document))
  } catch {
    return null
  }
}

/**
 * Whether the request belongs to the campaign: the proxy said so, or a member sent it before the campaign was
 * found.
 */
export function belongsTo(record: CampaignRecord): (sighting: Sighting) => boolean {
  const isOfMember = isMember(record)
  const { id, program, host } = record
  return (sighting) =>
    sighting.campaign === id ||
    (sighting.requestKind === REQUEST_KIND.page &&
      sighting.program === program &&
      sighting.host === host &&
      isOfMember(sighting))
}

/** Whether the network of a request is a member of the campaign. */
export function isMember({ members, salt }: CampaignRecord): (sighting: SeenClient) => boolean {
  const networks = new Set(members.map(([network]) => network))
  return (sighting) => networks.has(clientHash(sighting, salt))
}
