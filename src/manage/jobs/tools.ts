import type * as z from 'zod'
import type { AnyOperation } from '../http/operation.ts'
import { validated } from '../http/validate.ts'
import { insufficientScope, mayDoAll, type NamedNeeds, type Needs } from '../http/access/needed-scopes.ts'
import type { Principal, Scope } from '../http/access/principal.ts'
import type { Management } from '../management.ts'
import { Refusal } from '../http/refusal.ts'

/** Something that programs can do here: for `/execute`, MCP and A2A alike. */
export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  /** One of these is needed, as for what it does in the API, besides `mcp` to be here at all. */
  readonly scopes: readonly Scope[]
  /** More of them, where they depend on the arguments, which nothing has checked yet. */
  moreScopes?(given: unknown): Needs
  readonly protocols: readonly ToolProtocol[]
  readonly annotations: ToolAnnotations
  readonly input: z.ZodType
  /** Always an object, as MCP has it. */
  readonly output: z.ZodType
  /** Throws a Refusal that says why not. `given` is what `input` has made of the arguments. */
  run(given: unknown, caller: ToolCaller, management: Management): Promise<unknown>
  /** Waits for what `run` has only begun, for who can be told meanwhile how far it is. The result is as `run`'s. */
  follow?(result: unknown, caller: ToolCaller, management: Management, following: Following): Promise<unknown>
}

/** Somebody who waits for what takes long. */
export interface Following {
  /** Told how much is done, and of how much. */
  progress(completed: number, total: number): void
  /** Aborts when it is not wanted any more. */
  readonly cancelled: AbortSignal
  /** Aborts when nobody waits any more, though it may still be wanted. */
  readonly gone: AbortSignal
}

export type ToolProtocol = (typeof TOOL_PROTOCOLS)[number]

/** As MCP names them. */
export interface ToolAnnotations {
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

/** What came of calling a tool. */
export interface ToolOutcome {
  readonly result: unknown
  /** The tool has refused: `result` says why. */
  readonly isError: boolean
}

/** All tools, by name. */
export class Tools {
  readonly list: readonly Tool[]
  readonly #byName: ReadonlyMap<string, Tool>

  constructor(list: readonly Tool[]) {
    this.list = list
    this.#byName = new Map(list.map((tool) => [tool.name, tool]))
  }

  find(name: string): Tool | null {
    return this.#byName.get(name) ?? null
  }

  /**
   * Throws a Refusal at who may not, and at arguments that are wrong (`pointer`: where they stand in what was sent).
   * What the tool itself refuses is an outcome. `following`: who waits for the end of what takes long.
   */
  async call(
    tool: Tool,
    given: unknown,
    caller: ToolCaller,
    management: Management,
    pointer: string,
    following: Following | null = null,
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

/** A Refusal as the result of what has been asked for among others. */
export function refusalOf({ code, message, errors }: Refusal) {
  return { code, detail: message, ...(errors.length === 0 ? {} : { errors: [...errors] }) }
}

/** How arguments become a request to an operation. Of a query each value is a text, as in an address. */
export interface AskedOf {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** The operation's own schema has made it. */
  readonly isBodyRead?: boolean
}

/** Does what the API does at the operation's path, by the same function, and with the same checks. */
export async function ask(
  operation: AnyOperation,
  asked: AskedOf,
  caller: ToolCaller,
  management: Management,
): Promise<unknown> {
  const { principal, requestId, address } = caller
  const named = operation.params.safeParse(asked.params ?? {})
  const params: unknown = named.success ? named.data : null
  const subject: unknown = params === null ? null : await operation.find({ params, principal }, management)
  if (subject === null) throw new Refusal('not_found', 'there is nothing of this name')
  const query: unknown = validated(operation.query, asked.query ?? {}, 'query')
  const body: unknown =
    operation.body === null || asked.isBodyRead === true
      ? (asked.body ?? null)
      : validated(operation.body, asked.body ?? {}, 'body')
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

/** The scopes of a call of the tool, besides `mcp`, which every tool needs. `given` may be anything. */
export function neededBy(tool: Tool, given: unknown): NamedNeeds {
  return { what: `the tool ${tool.name}`, needs: [tool.scopes, ...(tool.moreScopes?.(given) ?? [])] }
}

/** With `mcp`, without which no tool is called. */
export function withDoor({ what, needs }: NamedNeeds): NamedNeeds {
  return { what, needs: [DOOR, ...needs] }
}

const DOOR = ['mcp'] as const

export const TOOL_PROTOCOLS = ['rest', 'mcp', 'a2a'] as const
