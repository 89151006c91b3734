import * as z from 'zod'
import { ENDED_MS } from '../../classify/campaign/finder.ts'
import { type CampaignRecord, parseCampaign } from '../intake/campaign-record.ts'
import { shownTo, sightOf } from '../intake/personal-data.ts'
import { time, timeOf } from '../http/schemas.ts'
import { type ApiOffered, listing, operation } from './operation.ts'

const campaign = z
  .strictObject({
    id: z.string().meta({ example: 'cmp_x7c1Jq0aT5b2Lw9k' }),
    state: z.enum(['running', 'ended']).meta({
      description: '`ended`: its members requested no page for an hour.',
    }),
    found_at: time,
    last_seen_at: time,
    host: z.string().nullable().meta({ description: 'The site that it crawls.' }),
    members: z.int().meta({ description: 'Networks that are joined to it: IPv4 addresses, or IPv6 /64.' }),
    requests: z.int().meta({ description: 'Pages that its members requested since it was found.' }),
    software_id: z.string().nullable().meta({ description: 'The browser that its requests claim to be.' }),
    user_agent: z.string().nullable().meta({
      description: 'Without the scope `admin`, parts that look like secrets are `[redacted]`.',
    }),
    fingerprints: z.strictObject({
      ja4: z.string().nullable(),
      stable: z.string().nullable(),
      http2: z.string().nullable(),
    }),
    signs: z
      .strictObject({
        addresses: z.int().meta({ description: 'Networks that requested pages without parts and links.' }),
        people: z.int().meta({
          description: 'Networks with the same browser and headers that behave like people.',
        }),
        pages_min: z.int().meta({
          description: 'How many different pages without parts and links join a network to the campaign.',
        }),
        pages: z.int().meta({ description: 'Pages of these networks that were compared.' }),
        different_pages: z.int().meta({ description: 'How many of them are different.' }),
        timing_variation: z.number().nullable().meta({
          description:
            'Variation of the gaps between pages: near 0 for a clock, 1 for people. `null`: unknown.',
        }),
      })
      .meta({ description: 'What the crowd did when it was last compared with the other visitors.' }),
  })
  .meta({ id: 'Campaign' })

const listCampaigns = listing({
  id: 'listCampaigns',
  path: '/campaigns',
  tag: 'Statistics',
  summary: 'List campaigns',
  description:
    'Crawlers that come from many addresses, the newest first. `GET /v1/requests?campaign_id=…` lists the requests of one. Campaigns are kept as long as events (`events.retention`).',
  scopes: ['read'],
  reach: 'organisation',
  name: 'campaigns',
  isPartFirst: true,
  filters: {},
  part: (_filters, part, { store }) => store.campaigns.list(part),
  items: {
    schema: campaign,
    show: (rows, { nowMs }, principal) =>
      rows.flatMap(({ document }) => {
        const record = parseCampaign(document)
        return record === null ? [] : [shownTo(sightOf(principal), shown(record, nowMs()))]
      }),
  },
})

const getCampaign = operation({
  id: 'getCampaign',
  method: 'GET',
  path: '/campaigns/{id}',
  tag: 'Statistics',
  summary: 'Get a campaign',
  scopes: ['read'],
  reach: 'organisation',
  params: z.strictObject({ id: z.string().max(100).meta({ example: 'cmp_x7c1Jq0aT5b2Lw9k' }) }),
  answer: campaign,
  find: async ({ params }, { store }) => {
    const row = await store.campaigns.byId(params.id)
    return row === null ? null : parseCampaign(row.document)
  },
  run: ({ subject, principal }, { nowMs }) => ({
    body: shownTo(sightOf(principal), shown(subject, nowMs())),
  }),
})

export const CAMPAIGN_OPERATIONS: readonly ApiOffered[] = [listCampaigns, getCampaign]

function shown(record: CampaignRecord, nowMs: number): z.output<typeof campaign> {
  const { id, foundAtMs, lastSeenMs, host, members, requests, software, userAgent, signs } = record
  const { ja4, stable, http2 } = record
  const { addresses, people, pagesMin, coverage, variation } = signs
  return {
    id,
    state: nowMs - lastSeenMs > ENDED_MS ? 'ended' : 'running',
    found_at: timeOf(foundAtMs),
    last_seen_at: timeOf(lastSeenMs),
    host,
    members: members.length,
    requests,
    software_id: software,
    user_agent: userAgent,
    fingerprints: { ja4, stable, http2 },
    signs: {
      addresses,
      people,
      pages_min: pagesMin,
      pages: coverage.targets,
      different_pages: coverage.distinct,
      timing_variation: variation === null ? null : Math.round(variation * 100) / 100,
    },
  }
}
