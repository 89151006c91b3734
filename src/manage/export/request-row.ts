import { conflictsIn } from '../../classify/verdict/proof-evidence.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { fingerprintsOf, outlineOf } from '../judging/sighting-account.ts'

export type RequestRow = ReturnType<typeof requestRow>

/** A request as lists, files and other systems show it. `nameOf`: names of software by id. */
export function requestRow(sighting: Sighting, nameOf: (id: string | null) => string | null) {
  const id: string = sighting.id
  const { agent, category, purposes, software, verified, signer, evidence, campaign } = sighting
  return {
    ...outlineOf(sighting),
    id,
    verdict: sighting.verdict,
    agent_id: agent,
    agent_name: nameOf(agent),
    agent_category: category,
    agent_purpose: [...purposes],
    software_id: software,
    software_name: nameOf(software),
    verified,
    identity: signer,
    conflicts: [...conflictsIn(evidence.map((kind) => ({ kind })))],
    fingerprints: fingerprintsOf(sighting),
    evidence: [...evidence],
    campaign_id: campaign,
    mcp_method: sighting.mcpMethod,
    mcp_tool: sighting.mcpTool,
    sampled: sighting.sampled ?? 1,
  }
}
