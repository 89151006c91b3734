import type * as z from 'zod'
import { Refusal } from '../http/refusal.ts'
import { refusalOf, type Tool, type ToolCaller, type Tools } from './tools.ts'
import type { HttpContext } from '../http/context.ts'
import { validated } from '../http/validate.ts'
import type { TaskItems } from '../../store/work/task-record.ts'

/** Applies a tool to many items. */
export interface TaskType<Context = never> {
  readonly type: string
  readonly title: string
  readonly description: string
  readonly tool: Tool<Context>
  readonly itemsMax: number
  /** With at most this many items, the task runs while its caller waits. */
  readonly atOnceMax: number
}

/** The result of one item. */
export interface ItemResult {
  /** The index in the task, from 0. */
  readonly index: number
  readonly status: 'ok' | 'error'
  readonly result?: unknown
  /** From a Refusal. */
  readonly error?: ReturnType<typeof refusalOf>
}

/** The task types whose tools exist, and `others`. */
export function taskTypesOf<Context extends Pick<HttpContext, 'publicUrl'>>(
  tools: Tools<Context>,
  others: readonly TaskType<Context>[],
): ReadonlyMap<string, TaskType<Context>> {
  const found = OF_TOOLS.flatMap(({ type, name, title, description }) => {
    const tool = tools.find(name)
    return tool === null
      ? []
      : [{ type, title, description, tool, itemsMax: ITEMS_MAX, atOnceMax: AT_ONCE_MAX }]
  })
  return new Map([...found, ...others].map((each) => [each.type, each]))
}

/** Processes some items and pauses between slices for other work. An item that is refused fails alone. */
export async function doItems<Context>(
  { tool }: TaskType<Context>,
  { from, items }: Omit<TaskItems, 'number'>,
  caller: ToolCaller,
  management: Context,
  pause: () => Promise<void>,
): Promise<readonly ItemResult[]> {
  const results: ItemResult[] = []
  let pausedMs = performance.now()
  for (const [i, item] of items.entries()) {
    results.push(await doItem(tool, from + i, item, caller, management))
    if (performance.now() - pausedMs < SLICE_MS) continue
    await pause()
    pausedMs = performance.now()
  }
  return results
}

async function doItem<Context>(
  tool: Tool<Context>,
  index: number,
  item: unknown,
  caller: ToolCaller,
  management: Context,
): Promise<ItemResult> {
  try {
    const given = validated(tool.input as z.ZodType, item, 'body')
    return { index, status: 'ok', result: await tool.run(given, caller, management) }
  } catch (error) {
    // Without signatures or a database no item can be processed, so the error does not belong to this item.
    if (!(error instanceof Refusal) || error.code === 'unavailable') throw error
    return { index, status: 'error', error: refusalOf(error) }
  }
}

export const ITEMS_MAX = 10_000
/** Takes a few milliseconds. */
const AT_ONCE_MAX = 100
/** The longest time that other work waits. */
export const SLICE_MS = 8

const OF_TOOLS = [
  {
    type: 'detect',
    name: 'detect_agent',
    title: 'Detect agents',
    description: 'Judges many requests: an item is what POST /detect takes.',
  },
  {
    type: 'lookup',
    name: 'lookup_fingerprint',
    title: 'Look up fingerprints',
    description: 'Finds the owners of many fingerprints. An item is `{fingerprint, type}`.',
  },
  {
    type: 'compare',
    name: 'compare_fingerprints',
    title: 'Compare fingerprints',
    description: 'Says of each set of fingerprints whether they are one client’s.',
  },
  {
    type: 'explain',
    name: 'explain_detection',
    title: 'Explain detections',
    description: 'As `detect`, with what each piece of evidence does to the verdict.',
  },
] as const
