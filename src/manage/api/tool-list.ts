import * as z from 'zod'
import { comparisonAnswer, comparisonRequest, explanationAnswer } from './analysis.ts'
import { detectionRequest } from './detect.ts'
import type { ApiOperation } from './operation.ts'
import { compare } from '../judging/comparison.ts'
import { knowledgeOf } from '../judging/detection.ts'
import { explain } from '../judging/explanation.ts'
import { followTask } from './task-following.ts'
import { ask, type OperationArguments, type Tool, TOOL_PROTOCOLS, Tools } from '../jobs/tools.ts'
import type { ApiContext } from './context.ts'
import { CATEGORIES, PURPOSES } from '../../classify/known/software.ts'

/** The tools for these operations, and the tools that have no operation of their own. */
export function toolsOf(operations: readonly ApiOperation[]): Tools<ApiContext> {
  const byAddress = new Map(operations.map((each) => [`${each.method} ${each.path}`, each]))
  const found = FROM_OPERATIONS.flatMap((each) => {
    const operation = byAddress.get(each.operation)
    return operation === undefined ? [] : [toolFrom(operation, each)]
  })
  return new Tools([...found, COMPARE, EXPLAIN])
}

interface FromOperation {
  readonly name: string
  readonly operation: `${'GET' | 'POST'} /${string}`
  readonly title: string
  /** Replaces the description of the operation, which is not written for tools. */
  readonly description: string
  readonly input: (operation: ApiOperation) => z.ZodType
  /** If the answer is a list, the name of the member that holds it. */
  readonly listName?: string
  readonly isReadOnly: boolean
  readonly asked: (given: ToolArguments) => OperationArguments
  readonly follow?: NonNullable<Tool<ApiContext>['follow']>
}

// biome-ignore lint/suspicious/noExplicitAny: the output of the tool's own schema
type ToolArguments = any

function toolFrom(operation: ApiOperation, from: FromOperation): Tool<ApiContext> {
  const { name, title, description, isReadOnly, listName } = from
  const answer: z.ZodType = operation.answer ?? z.null()
  return {
    name,
    title,
    description,
    scopes: operation.scopes,
    protocols: TOOL_PROTOCOLS,
    annotations: annotations(isReadOnly),
    input: from.input(operation),
    output: listName === undefined ? answer : z.strictObject({ [listName]: answer }),
    run: async (given, caller, management) => {
      const result = await ask(operation, from.asked(given), caller, management)
      return listName === undefined ? result : { [listName]: result }
    },
    ...(from.follow === undefined ? {} : { follow: from.follow }),
    ...(operation.moreScopes === null
      ? {}
      : { moreScopes: (given: unknown) => operation.moreScopes!(given)?.needs ?? [] }),
  }
}

function annotations(isReadOnly: boolean): Tool['annotations'] {
  return {
    readOnlyHint: isReadOnly,
    destructiveHint: false,
    idempotentHint: isReadOnly,
    openWorldHint: false,
  }
}

function bodyOf({ body }: ApiOperation): z.ZodType {
  return body as z.ZodType
}

/** The tool has the schema of the body, so the body is validated already. */
function asBody(body: ToolArguments): OperationArguments {
  return { body, isBodyRead: true }
}

/** Turns the given members into query parameters. */
function inQuery(given: Readonly<Record<string, unknown>>): Record<string, string> {
  const said = Object.entries(given).filter(([, value]) => value !== undefined)
  return Object.fromEntries(said.map(([name, value]) => [name, String(value)]))
}

const page = z.int().min(1).max(1_000_000).optional()
const limit = z.int().min(1).max(200).optional()

const FROM_OPERATIONS: readonly FromOperation[] = [
  {
    name: 'detect_agent',
    operation: 'POST /detect',
    title: 'Detect an AI agent',
    description:
      'Detects whether a request comes from an AI agent, which one, with what confidence, and why. Takes its User-Agent, its JA4 and JA4H fingerprints, its headers, or any of them.',
    input: bodyOf,
    isReadOnly: true,
    asked: asBody,
  },
  {
    name: 'lookup_fingerprint',
    operation: 'GET /fingerprint/lookup',
    title: 'Look up a fingerprint',
    description: 'Finds the software known to have a JA4, JA4S, JA4H or JA4X fingerprint.',
    input: () =>
      z.strictObject({
        fingerprint: z.string().min(1, 'is empty'),
        type: z.enum(['ja4', 'ja4s', 'ja4h', 'ja4x']).default('ja4'),
        match: z.enum(['exact', 'partial']).optional(),
      }),
    listName: 'signatures',
    isReadOnly: true,
    asked: ({ fingerprint, type, match }) => ({ query: inQuery({ [type]: fingerprint, match }) }),
  },
  {
    name: 'list_agents',
    operation: 'GET /agents',
    title: 'List known agents',
    description: 'Lists the known AI agents and frameworks with their fingerprints.',
    input: () =>
      z.strictObject({
        category: z.enum(CATEGORIES).optional(),
        purpose: z.enum(PURPOSES).optional(),
        q: z.string().optional(),
        app: z.string().min(1, 'is empty').optional(),
        page,
        limit,
      }),
    isReadOnly: true,
    asked: (given) => ({ query: inQuery(given) }),
  },
  {
    name: 'get_agent',
    operation: 'GET /agents/{agent_id}',
    title: 'Describe an agent',
    description: 'Describes one agent, found by its id (`gptbot`) or its exact name (`GPTBot`).',
    input: () => z.strictObject({ agent_id: z.string().min(1, 'is empty') }),
    isReadOnly: true,
    asked: ({ agent_id }) => ({ params: { agent_id } }),
  },
  {
    name: 'submit_signature',
    operation: 'POST /signatures/submit',
    title: 'Submit a fingerprint',
    description: 'Submits a new fingerprint for analysis. It affects no verdict until it is accepted.',
    input: bodyOf,
    isReadOnly: false,
    asked: asBody,
  },
  {
    name: 'create_task',
    operation: 'POST /tasks/create',
    title: 'Start a task',
    description:
      'Processes many items at once: `detect`, `lookup`, `compare`, `explain`, `analyze_capture`. Small tasks are finished in the answer. For larger ones, get_task returns the results.',
    input: bodyOf,
    isReadOnly: false,
    asked: asBody,
    follow: followTask,
  },
  {
    name: 'get_task',
    operation: 'GET /tasks/{task_id}',
    title: 'Get a task',
    description: 'Shows the progress of a task and its results so far.',
    input: () => z.strictObject({ task_id: z.string().min(1, 'is empty'), page, limit }),
    isReadOnly: true,
    asked: ({ task_id, ...query }) => ({ params: { task_id }, query: inQuery(query) }),
  },
  {
    name: 'get_stats',
    operation: 'GET /stats',
    title: 'Platform statistics',
    description: 'Counts the tracked agents and fingerprints, and recent detections.',
    input: () =>
      z.strictObject({
        window: z.enum(['1h', '24h', '7d', '30d']).optional(),
        bucket: z.string().optional(),
        app: z.string().min(1, 'is empty').optional(),
      }),
    isReadOnly: true,
    asked: (given) => ({ query: inQuery(given) }),
  },
]

const COMPARE: Tool<ApiContext> = {
  name: 'compare_fingerprints',
  title: 'Compare fingerprints',
  description:
    'Compares fingerprints: the same client, the same client in another session, the same library, or different. Shows which parts match and which software is known to have them.',
  scopes: ['read', 'detect'],
  protocols: TOOL_PROTOCOLS,
  annotations: annotations(true),
  input: comparisonRequest,
  output: comparisonAnswer,
  run: async (given, _caller, management) =>
    compare(knowledgeOf(management), (given as z.output<typeof comparisonRequest>).fingerprints),
}

const EXPLAIN: Tool<ApiContext> = {
  name: 'explain_detection',
  title: 'Explain a detection',
  description:
    'Takes the same input as detect_agent. Shows how each piece of evidence affects the verdict, what else the client could be, and which inputs are missing.',
  scopes: ['detect'],
  protocols: TOOL_PROTOCOLS,
  annotations: annotations(true),
  input: detectionRequest,
  output: explanationAnswer,
  run: async (given, _caller, management) => explain(given as z.output<typeof detectionRequest>, management),
}
