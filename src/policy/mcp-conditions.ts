import type { Place } from '../shared/problem.ts'
import type { McpMessage } from '../wire/mcp/mcp-message.ts'
import { all, glob, type PolicyNeeds, type Test } from './condition-form.ts'
import type { McpFacts } from './facts.ts'
import { asBytes, matchesAny } from './glob.ts'

/** The conditions about calls of MCP servers. Each holds only for a request whose body is such a call. */
export function mcpMethod(place: Place, needs: PolicyNeeds): Test | null {
  return mcpTest(place, needs, 'method', 'an MCP method, like tools/call')
}

export function mcpTool(place: Place, needs: PolicyNeeds): Test | null {
  return mcpTest(place, needs, 'tool', 'the name of a tool, like delete_*')
}

export function mcpResource(place: Place, needs: PolicyNeeds): Test | null {
  return mcpTest(place, needs, 'resource', 'the URI of a resource, like file:///secrets/*')
}

export function mcpFacts({ method, tool, resource }: McpMessage): McpFacts | null {
  if (method === null) return null
  return {
    method: asBytes(method),
    tool: tool === null ? null : asBytes(tool),
    resource: resource === null ? null : asBytes(resource),
  }
}

function mcpTest(place: Place, needs: PolicyNeeds, fact: keyof McpFacts, what: string): Test | null {
  needs.mcpConditions++
  const globs = all(place, (item) => glob(item, what, 'exact'))
  return (
    globs &&
    (({ facts: { mcp } }) => {
      const value = mcp?.[fact] ?? null
      return value !== null && matchesAny(globs, value)
    })
  )
}
