import { setImmediate as turn } from 'node:timers/promises'
import * as z from 'zod'
import { ALL_APPS, appListOf } from '../../apps/app-scope.ts'
import { checkPosition, type Order } from '../../store/engine/page.ts'
import type { TaskItems, TaskRecord } from '../../store/work/task-record.ts'
import { mayDo, type Principal } from '../http/access/principal.ts'
import { newId } from '../http/ids.ts'
import { invalid, Refusal } from '../http/refusal.ts'
import { callerOf } from '../jobs/task-runner.ts'
import { doItems, ITEMS_MAX, type TaskType } from '../jobs/task-types.ts'
import { keepTaskWebhook } from '../jobs/task-webhook.ts'
import { readWebhookUrl } from '../events/webhooks/webhook-url.ts'
import {
  CURSOR_ANSWER,
  CURSOR_FIELDS,
  cursorFor,
  cursorLinks,
  fromPosition,
  markOf,
  positionIn,
} from '../http/cursor.ts'
import type { ApiContext } from './context.ts'
import { exactlyOne } from './member-rules.ts'
import { type ApiOffered, type ApiOperation, type ApiVersioned, operation } from './operation.ts'
import { links, PAGE_FIELDS, time, timeOf } from '../http/schemas.ts'
import { jsonSchemaOf } from './tools.ts'

const status = z.enum(['queued', 'running', 'completed', 'failed', 'cancelled'])

const taskFields = {
  task_id: z.string().meta({ example: 'tsk_x7c1Jq0aT5b2' }),
  type: z.string(),
  status,
  total: z.int().min(0).meta({ description: 'Items.' }),
  completed: z.int().min(0).meta({ description: 'Items that are done, including failed ones.' }),
  failed: z.int().min(0),
  error: z.string().nullable().meta({ description: 'Why the whole task failed.' }),
  created_at: time,
  started_at: time.nullable(),
  finished_at: time.nullable(),
}

const itemResult = z
  .strictObject({
    index: z.int().min(0).meta({ description: 'Its place in `items`, from 0.' }),
    status: z.enum(['ok', 'error']),
    result: z.unknown().optional().meta({ description: 'The result, in the `output_schema` of the type.' }),
    error: z
      .strictObject({
        code: z.string(),
        detail: z.string(),
        errors: z.array(z.strictObject({ pointer: z.string(), detail: z.string() })).optional(),
      })
      .optional(),
  })
  .meta({ id: 'ItemResult' })

const task = z.strictObject(taskFields).meta({ id: 'Task' })
const taskWithResults = z
  .strictObject({
    ...taskFields,
    results: z
      .array(itemResult)
      .optional()
      .meta({ description: 'The results of a small task, which has already ended.' }),
    callback_secret: z.string().optional().meta({
      description:
        'With `callback_url`: the secret that signs the callback (Standard Webhooks). Shown only in this answer.',
    }),
  })
  .meta({ id: 'CreatedTask' })
const taskPage = z
  .strictObject({
    ...taskFields,
    results: z.array(itemResult).meta({ description: 'The results on this page that are ready.' }),
    page: z.int().min(1),
    limit: z.int().min(1),
  })
  .meta({ id: 'TaskPage' })
const taskPart = z
  .strictObject({
    ...taskFields,
    results: z.array(itemResult).meta({ description: 'The results on this page that are ready.' }),
    ...CURSOR_ANSWER,
  })
  .meta({ id: 'TaskPart' })

const schemaField = z.record(z.string(), z.unknown()).meta({ description: 'JSON Schema of an item.' })
const listAnswer = z.strictObject({
  tasks: z.array(
    z.strictObject({
      type: z.string(),
      title: z.string(),
      description: z.string(),
      input_schema: schemaField,
      output_schema: schemaField,
      max_items: z.int(),
    }),
  ),
  recent: z.array(task).meta({ description: 'The tasks of the caller, newest first.' }),
})

type Types = ReadonlyMap<string, TaskType<ApiContext>>

/** The operations on tasks of these types. */
export function taskOperations(types: Types): readonly ApiOffered[] {
  return [listTasks(types), createTask(types), getTask, cancelTask]
}

function listTasks(types: Types): ApiOperation {
  const tasks = [...types.values()].map(({ type, title, description, tool, itemsMax }) => ({
    type,
    title,
    description,
    input_schema: jsonSchemaOf(tool.input, 'input'),
    output_schema: jsonSchemaOf(tool.output, 'output'),
    max_items: itemsMax,
  }))
  return operation({
    id: 'listTasks',
    method: 'GET',
    path: '/tasks',
    tag: 'Tasks',
    summary: 'List task types',
    description: 'Also lists the latest tasks of the caller.',
    scopes: ['read'],
    reach: 'own',
    answer: listAnswer,
    run: async ({ principal }, { store }) => ({
      body: { tasks, recent: (await store.tasks.recent(principal.id, RECENT)).map(shownTask) },
    }),
  })
}

function createTask(types: Types): ApiOperation {
  const taskRequest = z
    .strictObject({
      type: z.enum([...types.keys()] as [string, ...string[]]),
      items: z
        .array(z.unknown())
        .min(1, 'is empty')
        .max(ITEMS_MAX, `must have at most ${ITEMS_MAX} items`)
        .optional(),
      input: z
        .unknown()
        .optional()
        .meta({ description: 'Instead of `items`, for types that take one input.' }),
      callback_url: z.string().max(2048, 'is longer than 2048 characters').nullish().meta({
        description:
          'Called when the task has ended, with a POST (Standard Webhooks): `{type, timestamp, data}`. The type is `task_completed`, `task_failed` or `task_cancelled`. The data is the task without its results. The URL must use https:// and a public address.',
      }),
    })
    .meta({ id: 'TaskRequest', override: exactlyOne('items', 'input') })
  return operation({
    id: 'createTask',
    method: 'POST',
    path: '/tasks/create',
    tag: 'Tasks',
    summary: 'Create a task',
    description:
      'A small task is finished in the answer, which contains its results. A larger one is queued, and `GET /tasks/{task_id}` shows its progress. An invalid item does not affect the others.',
    scopes: ['detect'],
    reach: 'own',
    moreScopes: (sent) => {
      const type = types.get(String((Object(sent) as { type?: unknown }).type))
      return type === undefined
        ? null
        : { what: `a task of the type ${type.type}`, needs: [type.tool.scopes] }
    },
    body: taskRequest,
    bodyBytesMax: BODY_BYTES_MAX,
    answer: taskWithResults,
    isIdempotent: true,
    problems: ['rate_limited', 'unavailable'],
    examples: {
      body: { type: 'detect', items: [{ user_agent: 'GPTBot/1.2' }, { user_agent: 'curl/8.17.0' }] },
    },
    run: async ({ body, principal }, management) => {
      const type = types.get(body.type)!
      const items = itemsIn(body, type)
      const callbackUrl = await callbackUrlIn(body, management)
      const make = items.length <= type.atOnceMax ? doNow : queue
      const made = await make(type, items, principal, management)
      if (callbackUrl === null) return { body: made }
      const callback_secret = await keepTaskWebhook(made.task_id, callbackUrl, management)
      return { body: { ...made, callback_secret } }
    },
  })
}

interface TaskRequest {
  readonly items?: readonly unknown[] | undefined
  readonly input?: unknown
  readonly callback_url?: string | null | undefined
}

async function callbackUrlIn(
  { callback_url }: TaskRequest,
  { allowPrivateWebhooks }: ApiContext,
): Promise<string | null> {
  if (callback_url == null) return null
  const read = await readWebhookUrl(callback_url, allowPrivateWebhooks)
  if ('refused' in read) throw invalid([{ pointer: '/callback_url', detail: read.refused }])
  return read.url
}

function itemsIn({ items, input }: TaskRequest, { type, itemsMax }: TaskType): readonly unknown[] {
  if ((items === undefined) === (input === undefined))
    throw invalid([{ pointer: '/items', detail: 'give exactly one of items and input' }])
  const all = items ?? [input]
  if (all.length > itemsMax)
    throw invalid([{ pointer: '/items', detail: `must have at most ${itemsMax} items of the type ${type}` }])
  return all
}

/** The task is stored too, so that a client that loses the answer can ask for it. */
async function doNow(
  type: TaskType<ApiContext>,
  items: readonly unknown[],
  { id: principal, apps: own }: Principal,
  management: ApiContext,
): Promise<z.output<typeof taskWithResults>> {
  const { store, nowMs } = management
  const id = newId('tsk')
  const atMs = nowMs()
  const apps = appListOf(own)
  const chunk = { number: 0, from: 0, items }
  const results = await doItems(type, chunk, callerOf({ id, principal, apps }, type), management, turn)
  const failed = results.filter((each) => each.status === 'error').length
  const task = { id, principal, apps, type: type.type, atMs, chunks: [chunk] }
  await store.tasks.addDone(task, { number: 0, results, failed }, nowMs())
  const done = (await store.tasks.byId(id))!
  return { ...shownTask(done), results: [...results] }
}

async function queue(
  type: TaskType<ApiContext>,
  items: readonly unknown[],
  { id: principal, apps: own }: Principal,
  { store, tasks, nowMs }: ApiContext,
): Promise<z.output<typeof taskWithResults>> {
  const id = newId('tsk')
  const apps = appListOf(own)
  const task = { id, principal, apps, type: type.type, atMs: nowMs(), chunks: chunksOf(items, type) }
  if (!(await store.tasks.add(task, OPEN_MAX)))
    throw new Refusal(
      'rate_limited',
      `too many open tasks (at most ${OPEN_MAX}): wait until one has ended, or cancel one`,
      {
        headers: { 'Retry-After': '10' },
      },
    )
  tasks.wake()
  return shownTask((await store.tasks.byId(id))!)
}

function chunksOf(items: readonly unknown[], { atOnceMax }: TaskType): readonly TaskItems[] {
  // Slow items are done one by one.
  const size = atOnceMax === 1 ? 1 : CHUNK_ITEMS
  const chunks: TaskItems[] = []
  for (let from = 0; from < items.length; from += size)
    chunks.push({ number: chunks.length, from, items: items.slice(from, from + size) })
  return chunks
}

/** Administrators of all apps see the tasks of every principal. */
function isVisible(task: TaskRecord, principal: Principal): boolean {
  return task.principal === principal.id || (principal.apps === ALL_APPS && mayDo(principal, []))
}

const taskParams = z.strictObject({ task_id: z.string().max(100) })

const ownTask = {
  params: taskParams,
  find: async (
    { params, principal }: { readonly params: z.output<typeof taskParams>; readonly principal: Principal },
    { store }: ApiContext,
  ) => {
    const task = await store.tasks.byId(params.task_id)
    // A task of another principal is answered like one that does not exist.
    return task !== null && isVisible(task, principal) ? task : null
  },
}

const lookedAt = {
  id: 'getTask',
  method: 'GET' as const,
  path: '/tasks/{task_id}' as const,
  tag: 'Tasks' as const,
  summary: 'Get a task',
  scopes: ['read'] as const,
  reach: 'own' as const,
  ...ownTask,
}

const getTask: ApiVersioned = {
  v1: operation({
    ...lookedAt,
    description: 'Its results are in the order of its items. Tasks of other callers are not found.',
    query: z.strictObject(PAGE_FIELDS),
    answer: taskPage,
    run: async ({ subject, query, target }, { store, publicUrl }) => {
      const { page, limit } = query
      const results = await resultsOf(subject, (page - 1) * limit, limit, store)
      return {
        body: { ...shownTask(subject), results, page, limit },
        headers: links(publicUrl, target, query, subject.total),
      }
    },
  }),
  v2: operation({
    ...lookedAt,
    description:
      'Its results are in the order of its items. `next_cursor` is set until the task has ended and all results are read, so a client that keeps paging follows the task. Tasks of other callers are not found.',
    query: z.strictObject(CURSOR_FIELDS),
    answer: taskPart,
    run: async ({ subject, query, target }, { store, publicUrl }) => {
      const { cursor, limit } = query
      const mark = markOf(lookedAt.id, subject.id)
      const position = positionIn(cursor, mark)
      await fromPosition(async () => position !== null && checkPosition(BY_ITEM, position))
      const read = Number(position?.[0] ?? 0)
      const results = await resultsOf(subject, read, limit, store)
      const next = read + results.length
      const isOver = subject.finishedAtMs !== null && next >= subject.completed
      const next_cursor = isOver ? null : cursorFor(mark, [next])
      return {
        body: { ...shownTask(subject), results, limit, next_cursor },
        headers: cursorLinks(publicUrl, target, next_cursor),
      }
    },
  }),
}

async function resultsOf({ id }: TaskRecord, skip: number, limit: number, { tasks }: ApiContext['store']) {
  return (await tasks.results(id, skip, limit)) as z.output<typeof itemResult>[]
}

const cancelTask = operation({
  id: 'cancelTask',
  method: 'DELETE',
  path: '/tasks/{task_id}',
  tag: 'Tasks',
  summary: 'Cancel a task',
  description: 'Results that are done are kept. A task that has ended is unchanged.',
  scopes: ['detect'],
  reach: 'own',
  ...ownTask,
  status: 204,
  run: async ({ subject }, { store, nowMs }) => {
    await store.tasks.cancel(subject.id, nowMs())
    return { body: null }
  },
})

/** The task as answers, tools and task webhooks show it. */
export function shownTask(record: TaskRecord): z.output<typeof task> {
  const { id: task_id, type, status, total, completed, failed, error } = record
  return {
    task_id,
    type,
    status,
    total,
    completed,
    failed,
    error,
    created_at: timeOf(record.createdAtMs),
    started_at: timeOf(record.startedAtMs),
    finished_at: timeOf(record.finishedAtMs),
  }
}

/** The index of the first item that is not read yet. */
const BY_ITEM: Pick<Order, 'columns'> = { columns: [{ name: 'task_chunks.from_item', kind: 'whole' }] }
const RECENT = 20
const BODY_BYTES_MAX = 8 * 1_048_576
/** Per principal. */
const OPEN_MAX = 100
/**
 * The results of a chunk are written at once: larger chunks mean fewer writes, smaller chunks show results
 * sooner.
 */
const CHUNK_ITEMS = 500
