import type * as z from 'zod'
import type { AnyOperation } from '../http/operation.ts'
import type { HttpContext } from '../http/context.ts'
import { validated } from '../http/validate.ts'
import { insufficientScope, mayDoAll, type NamedNeeds, type Needs } from '../http/access/needed-scopes.ts'
import type { Principal, Scope } from '../http/access/principal.ts'
import { checkReach } from '../http/access/reach.ts'
import { Refusal } from '../http/refusal.ts'

/**
 * A function that programs can call through `/execute`, MCP and A2A. `Context`: the parts of the management
 * plane that tools use. Without it, the tool can be read and not run.
 */
export interface Tool<Context = never> {
  readonly name: string
  readonly title: string
  readonly description: string
  /** One of these is required, as for the same function in the API. Calling any tool also requires `mcp`. */
  readonly scopes: readonly Scope[]
  /** Further scopes that depend on the arguments, which are not validated yet. */
  moreScopes?(given: unknown): Needs
  readonly protocols: readonly ToolProtocol[]
  readonly annotations: ToolAnnotations
  readonly input: z.ZodType
  /** Always an object, as MCP requires. */
  readonly output: z.ZodType
  /** Throws a Refusal with the reason. `given` is the parsed form of the arguments, from `input`. */
  readonly run: (given: unknown, caller: ToolCaller, management: Context) => Promise<unknown>
  /** Waits for work that `run` only started and reports its progress. The result has the form of `run`'s. */
  readonly follow?: (
    result: unknown,
    caller: ToolCaller,
    management: Context,
    following: Following,
  ) => Promise<unknown>
}

/** A caller that waits for a long call. */
export interface Following {
  /** Reports how much is done, and the total. */
  progress(completed: number, total: number): void
  /** Aborts when the caller cancels the call. */
  readonly cancelled: AbortSignal
  /** Aborts when the caller disconnects, although it may still want the result. */
  readonly gone: AbortSignal
}

type ToolProtocol = (typeof TOOL_PROTOCOLS)[number]

/** The names of MCP. */
interface ToolAnnotations {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

export interface ToolCaller {
  readonly principal: Principal
  readonly requestId: string
  readonly address: string
}

/** The result of a tool call. */
export interface ToolOutcome {
  readonly result: unknown
  /** The tool refused: `result` says why. */
  readonly isError: boolean
}

/** One call of a tool. */
interface ToolCall {
  /** The arguments. They are not validated yet. */
  readonly given: unknown
  readonly caller: ToolCaller
  /** Where the arguments are in the request. */
  readonly pointer: string
  /** For a caller that waits for the end of a long call. */
  readonly following?: Following | null
}

/** All tools, by name. */
export class Tools<Context extends Pick<HttpContext, 'publicUrl'> = never> {
  readonly list: readonly Tool<Context>[]
  readonly #byName: ReadonlyMap<string, Tool<Context>>

  constructor(list: readonly Tool<Context>[]) {
    this.list = list
    this.#byName = new Map(list.map((tool) => [tool.name, tool]))
  }

  find(name: string): Tool<Context> | null {
    return this.#byName.get(name) ?? null
  }

  /**
   * Throws a Refusal if the caller lacks a scope or the arguments are invalid. A refusal by the tool itself is
   * an outcome.
   */
  async call(
    tool: Tool<Context>,
    { given, caller, pointer, following = null }: ToolCall,
    management: Context,
  ): Promise<ToolOutcome> {
    const needed = neededBy(tool, given)
    if (!mayDoAll(caller.principal, needed.needs))
      throw insufficientScope(withDoor(needed), caller.principal, management.publicUrl)
    const input = argumentsOf(tool, given, pointer)
    try {
      const begun = await tool.run(input, caller, management)
      if (following === null || tool.follow === undefined) return { result: begun, isError: false }
      return { result: await tool.follow(begun, caller, management, following), isError: false }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (error.code === 'unavailable') throw error
      return { result: refusalOf(error), isError: true }
    }
  }
}

/** A Refusal as the result of one item or call. */
export function refusalOf({ code, message, errors }: Refusal) {
  return { code, detail: message, ...(errors.length === 0 ? {} : { errors: [...errors] }) }
}

/** The arguments of a call to an operation. Query values are strings, as in a URL. */
export interface OperationArguments {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** The body was already parsed with the operation's own schema. */
  readonly isBodyRead?: boolean
}

/** Runs an API operation with the same function and the same checks as over HTTP. */
export async function ask<Context>(
  operation: AnyOperation<Context>,
  given: OperationArguments,
  caller: ToolCaller,
  management: Context,
): Promise<unknown> {
  const { principal, requestId, address } = caller
  checkReach(principal, operation)
  const named = operation.params.safeParse(given.params ?? {})
  const params: unknown = named.success ? named.data : null
  const subject: unknown = params === null ? null : await operation.find({ params, principal }, management)
  if (subject === null) throw new Refusal('not_found', 'there is nothing of this name')
  const query: unknown = validated(operation.query, given.query ?? {}, 'query')
  const body: unknown =
    operation.body === null || given.isBodyRead === true
      ? (given.body ?? null)
      : validated(operation.body, given.body ?? {}, 'body')
  const target = `/v1${operation.path}`
  const asOf = { principal, requestId, address, target, ifMatch: null, lastEventId: null }
  const call = { params, query, body, subject, ...asOf }
  return (await operation.run(call, management)).body
}

function argumentsOf(tool: Tool, given: unknown, pointer: string): unknown {
  try {
    return validated(tool.input, given ?? {}, 'body')
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const errors = error.errors.map((each) => ({ ...each, pointer: `${pointer}${each.pointer}` }))
    throw new Refusal(error.code, error.message, { errors })
  }
}

/**
 * The scopes that a call of the tool needs, besides `mcp`, which every tool needs. `given` may be anything.
 */
export function neededBy(tool: Tool, given: unknown): NamedNeeds {
  return { what: `the tool ${tool.name}`, needs: [tool.scopes, ...(tool.moreScopes?.(given) ?? [])] }
}

/** Adds `mcp`, which every tool call needs. */
export function withDoor({ what, needs }: NamedNeeds): NamedNeeds {
  return { what, needs: [DOOR, ...needs] }
}

const DOOR = ['mcp'] as const

export const TOOL_PROTOCOLS = ['rest', 'mcp', 'a2a'] as const
