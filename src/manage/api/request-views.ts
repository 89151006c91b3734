import * as z from 'zod'
import type { Sighting } from '../../plane/sighting.ts'
import { POLICY_LAYERS } from '../../policy/action.ts'
import { requestRow } from '../export/request-row.ts'
import { time } from '../http/schemas.ts'
import { shownTo, type Sight } from '../intake/personal-data.ts'
import type { ApiContext } from './context.ts'
import { nameConfidence } from './detect.ts'

export const VERDICTS = ['agent', 'automation', 'human', 'unknown'] as const

const NAME = 'The name in the catalogue of today. `null`: it has none.'

/** A request as the API shows it. */
export const request = z
  .strictObject({
    id: z
      .string()
      .meta({ description: 'Also the id of the decision, as sent to the app and shown on error pages.' }),
    seen_at: time,
    proxy: z.string(),
    app: z
      .string()
      .meta({ description: 'The id of the app; `default` if it matched none.', example: 'shop' }),
    method: z.string(),
    host: z.string().nullable(),
    path: z.string().meta({
      description:
        'The path without the query. Without the scope `admin`, segments that look like secrets are `[redacted]`.',
    }),
    address: z.string().meta({
      description: 'The address of the client. Without the scope `admin`, its network (IPv4 /24, IPv6 /48).',
      example: '203.0.113.0/24',
    }),
    network: z
      .strictObject({ asn: z.int(), name: z.string().nullable(), country: z.string().nullable() })
      .nullable()
      .meta({
        description:
          'The autonomous system of the address, and its country, as the list of `identity.asn_file` has them today. `null`: unknown, no list is set, or the address is stored as a hash.',
      }),
    user_agent: z.string().nullable().meta({
      description: 'Without the scope `admin`, parts that look like secrets are `[redacted]`.',
    }),
    verdict: z.enum(VERDICTS),
    confidence: z.number(),
    name_confidence: nameConfidence,
    agent_id: z.string().nullable(),
    agent_name: z.string().nullable().meta({ description: NAME }),
    agent_category: z.string().nullable(),
    agent_purpose: z.array(z.string()).meta({ description: 'The published purposes of the agent.' }),
    software_id: z.string().nullable(),
    software_name: z.string().nullable().meta({ description: NAME }),
    verified: z.string().nullable().meta({ description: 'How its identity was proven.' }),
    identity: z.string().nullable().meta({ description: 'The URL of the signer.' }),
    conflicts: z.array(z.string()).meta({
      description: 'Evidence that contradicts the claimed or proven identity, as in `X-Agent-Conflict`.',
    }),
    fingerprints: z.strictObject({ ja4: z.string(), ja4s: z.string(), ja4h: z.string(), ja4x: z.string() }),
    evidence: z.array(z.string()).meta({ description: 'The kinds of evidence, strongest first.' }),
    campaign_id: z.string().nullable().meta({
      description: 'The campaign that it belongs to, as far as the proxy knew.',
    }),
    mcp_method: z.string().nullable().meta({
      description:
        'The method of a call to an app that is an MCP server. `null`: no rule asked for the call, or there was none.',
      example: 'tools/call',
    }),
    mcp_tool: z.string().nullable().meta({
      description: 'The tool that the call names; never its arguments.',
    }),
    rule: z.string(),
    layer: z.enum(POLICY_LAYERS).nullable().meta({
      description:
        'Where the rule stands: `app` in the policy of the app, `first` and `last` in that of the organisation. `null`: a setting of the proxy has decided, or an earlier version has recorded it.',
    }),
    action: z.string().meta({ description: 'The action taken.' }),
    dry_run: z
      .string()
      .nullable()
      .meta({ description: 'What a rule on trial would have done. `null`: no such rule matched.' }),
    sampled: z.number().min(0).max(1).meta({
      description:
        'The share of the requests like this one that was recorded: 0.01 is one of a hundred, so this one stands for a hundred. 1: all.',
    }),
  })
  .meta({ id: 'Request' })

export type ShownRequest = z.output<typeof request>

/** With the names of today. */
export async function shownAll(
  sightings: readonly Sighting[],
  sight: Sight,
  { store: { agentsSeen }, networks }: Pick<ApiContext, 'store' | 'networks'>,
): Promise<ShownRequest[]> {
  const ids = new Set(sightings.flatMap(({ agent, software }) => [agent, software]))
  const names = await agentsSeen.names([...ids].filter((id) => id !== null))
  const nameOf = (id: string | null) => (id === null ? null : (names.get(id)?.name ?? null))
  const file = networks()
  return sightings.map((sighting) => {
    const row = requestRow(sighting, nameOf)
    const shown = shownTo(sight, { ...row, verdict: row.verdict as ShownRequest['verdict'] })
    return { ...shown, network: file?.ofRange(shown.address) ?? null }
  })
}
