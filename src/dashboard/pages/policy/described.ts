import type { DetectionRequest, Request, WrittenRequest } from '../../api/operations.ts'
import { readPasted } from '../explore/pasted.ts'

/** A request described in the form. */
export interface Described {
  /** A request head, headers, or the output of `curl -v`. */
  readonly text: string
  readonly ja4: string
  readonly address: string
  /** The verdict; empty: derived from the other fields. */
  readonly kind: string
  /** Empty: no agent. */
  readonly agent: string
  readonly category: string
  readonly purpose: readonly string[]
  /** The call of an MCP server; empty: none. */
  readonly mcpMethod: string
  readonly mcpTool: string
}

export const NOTHING_DESCRIBED: Described = {
  ...{ text: '', ja4: '', address: '', kind: '', agent: '', category: '', purpose: [] },
  ...{ mcpMethod: '', mcpTool: '' },
}

/** The request in the API's form, or what is wrong with it. */
export function writtenRequest(described: Described): WrittenRequest | string {
  const { text, ja4, address, kind, agent, category, purpose, mcpMethod, mcpTool } = described
  const sent = sentIn(text)
  if (typeof sent === 'string') return sent
  if (agent !== '' && kind !== 'agent') return 'An agent ID needs the verdict “agent”.'
  // The API reports unknown names.
  const verdict = {
    kind,
    ...(agent !== '' && {
      agent: { id: agent, ...(category !== '' && { category }), ...(purpose.length > 0 && { purpose }) },
    }),
  } as NonNullable<WrittenRequest['verdict']>
  return {
    ...sent,
    ...(ja4 !== '' && { ja4 }),
    ...(address !== '' && { address }),
    ...(kind !== '' && { verdict }),
    ...((mcpMethod !== '' || mcpTool !== '') && {
      mcp: { ...(mcpMethod !== '' && { method: mcpMethod }), ...(mcpTool !== '' && { tool: mcpTool }) },
    }),
  }
}

/** A recorded request with its verdict. */
export function recorded(request: Request): Described {
  const { method, host, path, user_agent, fingerprints, address, verdict } = request
  const { agent_id, agent_category, agent_purpose, mcp_method, mcp_tool } = request
  const lines = [
    `${method} ${path} HTTP/${fingerprints.ja4h.slice(2, 4) === '20' ? '2' : '1.1'}`,
    ...(host === null ? [] : [`Host: ${host}`]),
    ...(user_agent === null ? [] : [`User-Agent: ${user_agent}`]),
  ]
  return {
    ...{ text: lines.join('\n'), ja4: fingerprints.ja4, kind: verdict },
    // Policies take addresses, and a stored one may be a network or a hash.
    ...{ address: /^hash:|\//.test(address) ? '' : address },
    ...{ agent: agent_id ?? '', category: agent_category ?? '', purpose: agent_purpose },
    ...{ mcpMethod: mcp_method ?? '', mcpTool: mcp_tool ?? '' },
  }
}

function sentIn(text: string): WrittenRequest | string {
  const pasted = readPasted(text)
  switch (pasted.kind) {
    case 'empty':
      return {}
    case 'unknown':
      return `Not a request: ${pasted.why}.`
    case 'fingerprint':
      return pasted.type === 'ja4' || pasted.type === 'ja4h'
        ? { [pasted.type]: pasted.fingerprint }
        : 'Policies do not use this type of fingerprint.'
    case 'user-agent':
      return written({ headers: { 'User-Agent': pasted.request.user_agent! } })
    case 'request':
      return written(pasted.request)
  }
}

function written({ method, path, http_version, headers }: DetectionRequest): WrittenRequest {
  return {
    ...(method && { method }),
    ...(path && { path }),
    ...((http_version === '2' || http_version === '1.1') && { http: http_version }),
    ...(headers && { headers }),
  }
}
