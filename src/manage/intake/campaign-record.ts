import * as z from 'zod'
import { REQUEST_KIND } from '../../classify/campaign/seen-request.ts'
import type { Campaign } from '../../classify/campaign/finder.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { networkHash } from './sighting-intake.ts'

const count = z.number().min(0)
const hash = z.int().min(0).max(0xffff_ffff)

/** A campaign as it is stored. */
const campaignRecord = z.object({
  id: z.string(),
  salt: hash,
  cohort: hash,
  program: hash,
  hostHash: hash,
  foundAtMs: count,
  lastSeenMs: count,
  requests: count,
  /** Hashes of networks, and when each was last seen. */
  members: z.array(z.tuple([hash, count])),
  signs: z.object({
    addresses: count,
    people: count,
    pagesMin: count,
    coverage: z.object({ targets: count, distinct: count }),
    variation: z.number().nullable(),
  }),
  /** One of its requests. */
  host: z.string().nullable(),
  software: z.string().nullable(),
  userAgent: z.string().nullable(),
  stable: z.string().nullable(),
  http2: z.string().nullable(),
  ja4: z.string().nullable(),
})
export type CampaignRecord = z.output<typeof campaignRecord>

/** What is known of a program besides its hash. */
export type ProgramFacts = Pick<CampaignRecord, 'software' | 'userAgent' | 'stable' | 'http2' | 'ja4'>
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

export function campaignOf(record: CampaignRecord): Campaign {
  const { id, cohort, program, hostHash: host, foundAtMs, lastSeenMs, requests, members, signs } = record
  return { id, cohort, program, host, foundAtMs, lastSeenMs, requests, members: new Map(members), signs }
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
  const networks = new Set(record.members.map(([network]) => network))
  const { id, program, salt, host } = record
  return (sighting) =>
    sighting.campaign === id ||
    (sighting.requestKind === REQUEST_KIND.page &&
      sighting.program === program &&
      sighting.host === host &&
      networks.has(networkHash(sighting.address, salt)))
}
