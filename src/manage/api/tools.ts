import * as z from 'zod'
import { SCOPES } from '../http/access/principal.ts'
import { Refusal } from '../http/refusal.ts'
import { didYouMean } from '../../shared/did-you-mean.ts'
import { neededBy, type Tool, TOOL_PROTOCOLS, type Tools } from '../jobs/tools.ts'
import type { ApiContext } from './context.ts'
import { type ApiOperation, operation } from './operation.ts'

const jsonSchema = z.record(z.string(), z.unknown()).meta({ description: 'JSON Schema.' })

const tool = z
  .strictObject({
    name: z.string().meta({ example: 'detect_agent' }),
    title: z.string(),
    description: z.string(),
    input_schema: jsonSchema,
    output_schema: jsonSchema,
    scopes: z
      .array(z.enum(SCOPES))
      .meta({ description: 'One of these scopes is required. MCP also requires `mcp`.' }),
    protocols: z.array(z.enum(TOOL_PROTOCOLS)),
    annotations: z.strictObject({
      readOnlyHint: z.boolean(),
      destructiveHint: z.boolean(),
      idempotentHint: z.boolean(),
      openWorldHint: z.boolean(),
    }),
  })
  .meta({ id: 'Tool' })

const executeRequest = z
  .strictObject({
    tool: z.string(),
    arguments: z.unknown().optional().meta({ description: 'An object that matches its `input_schema`.' }),
  })
  .meta({ id: 'ExecuteRequest' })

const executeAnswer = z
  .strictObject({
    tool: z.string(),
    result: z.record(z.string(), z.unknown()).meta({
      description: 'Matches its `output_schema`. If `is_error` is true, the error: `code` and `detail`.',
    }),
    is_error: z.boolean().meta({ description: 'Whether the tool failed although the call was valid.' }),
    duration_ms: z.number().min(0),
  })
  .meta({ id: 'ExecuteResult' })

export function toolOperations(tools: Tools<ApiContext>): readonly ApiOperation[] {
  return [listTools(tools), executeTool(tools)]
}

function listTools(tools: Tools): ApiOperation {
  const body = { tools: tools.list.map(described) }
  return operation({
    id: 'listTools',
    method: 'GET',
    path: '/tools',
    tag: 'Tools',
    summary: 'List the tools',
    description: 'MCP and A2A offer the same tools under the same names.',
    scopes: ['read', 'mcp'],
    reach: 'shared',
    answer: z.strictObject({ tools: z.array(tool) }),
    run: () => ({ body }),
  })
}

function executeTool(tools: Tools<ApiContext>): ApiOperation {
  return operation({
    id: 'executeTool',
    method: 'POST',
    path: '/execute',
    tag: 'Tools',
    summary: 'Run a tool',
    description:
      'An unknown tool is answered with 404, invalid arguments with 400. A failure of the tool itself, such as an unknown agent, is an answer with `is_error`.',
    scopes: ['mcp'],
    reach: 'filtered',
    moreScopes: (sent) => {
      const { tool: name, arguments: given } = Object(sent) as { tool?: unknown; arguments?: unknown }
      const asked = tools.find(String(name))
      return asked === null ? null : neededBy(asked, given)
    },
    body: executeRequest,
    bodyBytesMax: BODY_BYTES_MAX,
    answer: executeAnswer,
    problems: ['not_found', 'unavailable'],
    examples: {
      body: { tool: 'detect_agent', arguments: { user_agent: 'GPTBot/1.2' } },
      answer: {
        tool: 'detect_agent',
        result: { is_agent: true, confidence: 0.9971, agent_name: 'GPTBot', name_confidence: 0.5 },
        is_error: false,
        duration_ms: 0.21,
      },
    },
    run: async ({ body, principal, requestId, address }, management) => {
      const asked = tools.find(body.tool)
      if (asked === null) throw noTool(tools, body.tool)
      const startedMs = performance.now()
      const caller = { principal, requestId, address }
      const call = { given: body.arguments, caller, pointer: '/arguments' }
      const { result, isError } = await tools.call(asked, call, management)
      const duration_ms = Math.round((performance.now() - startedMs) * 1000) / 1000
      return {
        body: { tool: asked.name, result: result as Record<string, unknown>, is_error: isError, duration_ms },
      }
    },
  })
}

export function noTool({ list }: Tools, name: string): Refusal {
  const near = didYouMean(
    name,
    list.map((each) => each.name),
  )
  return new Refusal('not_found', `unknown tool${near}`)
}

function described({ name, title, description, scopes, protocols, annotations, input, output }: Tool) {
  return {
    name,
    title,
    description,
    input_schema: jsonSchemaOf(input, 'input'),
    output_schema: jsonSchemaOf(output, 'output'),
    scopes: [...scopes],
    protocols: [...protocols],
    annotations,
  }
}

/** A JSON Schema 2020-12 for programs. It describes an object at its root, as MCP requires. */
export function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output'): Record<string, unknown> {
  const {
    $schema: _dialect,
    $ref,
    $defs = {},
    ...rest
  } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      const { override } = jsonSchema
      delete jsonSchema['override']
      Object.assign(jsonSchema, override)
    },
  })
  const root = ($ref === undefined ? rest : $defs[$ref.slice(DEFS.length)]) as Record<string, unknown>
  return { type: 'object', ...withoutRules(root), ...(Object.keys($defs).length === 0 ? {} : { $defs }) }
}

/**
 * Vendors of models refuse a tool whose schema has rules between arguments at its root. The tool reports
 * violations itself.
 */
function withoutRules(root: Record<string, unknown>): Record<string, unknown> {
  if (root['properties'] === undefined) return root
  const { anyOf: _any, oneOf: _one, allOf: _all, if: _if, then: _then, else: _else, ...others } = root
  return others
}

const DEFS = '#/$defs/'
/** The arguments may contain the items of a task. */
const BODY_BYTES_MAX = 8 * 1_048_576
