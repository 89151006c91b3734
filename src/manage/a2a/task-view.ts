import {
  type Artifact,
  type Message,
  type Part,
  Role,
  type StreamResponse,
  type Task,
  TaskState,
  type TaskStatus,
} from '@a2a-js/sdk'
import type { Store } from '../../store/store.ts'
import type { TaskStatus as OurStatus } from '../../store/engine/tables/tasks.ts'
import type { TaskRecord } from '../../store/work/task-record.ts'

/** Consecutive results of a task, in the order of its items. */
interface ResultPiece {
  readonly parts: readonly Part[]
  /** The index of the first result, and the index after the last one. */
  readonly from: number
  readonly to: number
}

/** The task in A2A's format, without results. */
export function taskOf(record: TaskRecord): Task {
  return {
    id: record.id,
    contextId: contextOf(record),
    status: statusOf(record),
    artifacts: [],
    history: [],
    metadata: progressOf(record),
  }
}

/** The task with its results so far, up to `bytesMax`. A link to the remaining results follows. */
export async function taskWithResults(
  record: TaskRecord,
  bytesMax: number,
  source: ResultSource,
): Promise<{ readonly task: Task; readonly shown: number; readonly bytes: number }> {
  const parts: Part[] = []
  let [shown, bytes] = [0, 0]
  for await (const piece of resultPieces(record, 0, source)) {
    if (bytes >= bytesMax) {
      parts.push(resultsElsewhere(record, shown, source.publicUrl))
      break
    }
    parts.push(...piece.parts)
    shown = piece.to
    bytes += sizeOf(piece)
  }
  const artifacts = parts.length === 0 ? [] : [artifactOf(parts, 0, shown)]
  return { task: { ...taskOf(record), artifacts }, shown, bytes }
}

export function statusUpdate(record: TaskRecord): StreamResponse {
  const value = {
    taskId: record.id,
    contextId: contextOf(record),
    status: statusOf(record),
    metadata: progressOf(record),
  }
  return { payload: { $case: 'statusUpdate', value } }
}

export function artifactUpdate(
  record: TaskRecord,
  { parts, from, to }: ResultPiece,
  isLast: boolean,
): StreamResponse {
  const artifact = artifactOf(parts, from, to)
  const value = {
    taskId: record.id,
    contextId: contextOf(record),
    artifact,
    append: from > 0,
    lastChunk: isLast,
    metadata: undefined,
  }
  return { payload: { $case: 'artifactUpdate', value } }
}

/** Yields the finished results from index `from` on, in pieces that are read one by one. */
export async function* resultPieces(
  { id, completed }: TaskRecord,
  from: number,
  { store, publicUrl }: ResultSource,
): AsyncGenerator<ResultPiece, void, undefined> {
  for (let at = from; at < completed; ) {
    const results = await store.tasks.results(id, at, READ_AT_ONCE - (at % READ_AT_ONCE))
    if (results.length === 0) return // some results were deleted meanwhile
    let parts: Part[] = []
    let [first, bytes] = [at, 0]
    for (const result of results) {
      const length = JSON.stringify(result).length
      if (parts.length > 0 && bytes + length > PIECE_LENGTH) {
        yield { parts, from: first, to: at }
        ;[parts, first, bytes] = [[], at, 0]
      }
      parts.push(length > PART_LENGTH_MAX ? resultElsewhere(id, at, publicUrl) : dataPart(result))
      bytes += Math.min(length, PART_LENGTH_MAX)
      at++
    }
    yield { parts, from: first, to: at }
  }
}

interface ResultSource {
  readonly store: Pick<Store, 'tasks'>
  readonly publicUrl: string
}

export function dataPart(value: unknown): Part {
  return {
    content: { $case: 'data', value },
    metadata: undefined,
    filename: '',
    mediaType: 'application/json',
  }
}

export function textPart(value: string): Part {
  return { content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: 'text/plain' }
}

export function messageFrom(
  id: string,
  contextId: string,
  taskId: string,
  parts: Part[],
  metadata: Readonly<Record<string, unknown>> | undefined,
): Message {
  return {
    messageId: id,
    contextId,
    taskId,
    role: Role.ROLE_AGENT,
    parts,
    metadata,
    extensions: [],
    referenceTaskIds: [],
  }
}

/** Maps a state of A2A to our status; `null` if we have no such status. */
export function statusWith(state: string): OurStatus | null {
  return STATUSES.find((each) => TaskState[STATES[each]] === state) ?? null
}

export function hasEnded({ finishedAtMs }: TaskRecord): boolean {
  return finishedAtMs !== null
}

/** A task that was not created through A2A has a context of its own. */
function contextOf({ id, contextId }: TaskRecord): string {
  return contextId ?? id
}

function statusOf(record: TaskRecord): TaskStatus {
  const { id, status, error, changedAtMs } = record
  const message =
    error === null
      ? undefined
      : messageFrom(`${id}:error`, contextOf(record), id, [textPart(error)], undefined)
  return { state: STATES[status], message, timestamp: new Date(changedAtMs).toISOString() }
}

function progressOf({ type, total, completed, failed }: TaskRecord) {
  return { type, total, completed, failed }
}

function artifactOf(parts: readonly Part[], from: number, to: number): Artifact {
  return {
    artifactId: 'results',
    name: 'Results',
    description:
      'One part for each item, in the order of the items: {index, status, result} or {index, status, error}.',
    parts: [...parts],
    metadata: { from, to },
    extensions: [],
  }
}

/** A link to the page of the API that has the results from index `from` on. */
function resultsElsewhere({ id }: TaskRecord, from: number, publicUrl: string): Part {
  const page = Math.floor(from / PAGE_LIMIT) + 1
  return urlPart(`${publicUrl}/v1/tasks/${id}?page=${page}&limit=${PAGE_LIMIT}`)
}

function resultElsewhere(id: string, index: number, publicUrl: string): Part {
  return urlPart(`${publicUrl}/v1/tasks/${id}?page=${index + 1}&limit=1`)
}

function urlPart(value: string): Part {
  return {
    content: { $case: 'url', value },
    metadata: undefined,
    filename: '',
    mediaType: 'application/json',
  }
}

function sizeOf({ parts }: ResultPiece): number {
  return parts.reduce((sum, part) => sum + JSON.stringify(part).length, 0)
}

const STATUSES = ['queued', 'running', 'completed', 'failed', 'cancelled'] as const
const STATES: Readonly<Record<OurStatus, TaskState>> = {
  queued: TaskState.TASK_STATE_SUBMITTED,
  running: TaskState.TASK_STATE_WORKING,
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
  cancelled: TaskState.TASK_STATE_CANCELED,
}
/** Per response. Clients read more page by page, or as a stream. */
export const RESULTS_LENGTH_MAX = 4 * 1_048_576
/** Results are written in blocks of this size. Aligned reads fetch each block once. */
const READ_AT_ONCE = 500
/** Per event of a stream. Clients accept four megabytes. */
const PIECE_LENGTH = 524_288
const PART_LENGTH_MAX = 1_048_576
/** The API's maximum page size. */
const PAGE_LIMIT = 200
