import type { Generated } from 'kysely'

export interface TaskTables {
  tasks: TaskTable
  task_chunks: TaskChunkTable
  task_callbacks: TaskCallbackTable
}

/** A job with many items. */
export interface TaskTable {
  id: string
  /** The owner. */
  principal: string
  /** JSON: the apps of the principal when it created the task: a list of ids, or `"*"`. */
  apps: Generated<string>
  type: string
  status: TaskStatus
  /** The numbers of items: all, done, and failed among the done. */
  total: number
  completed: number
  failed: number
  created_at_ms: number
  started_at_ms: number | null
  finished_at_ms: number | null
  /** The process that works on it, and until when no other may; `null`: not claimed. */
  lease_owner: string | null
  lease_until_ms: number | null
  /** The number of starts since the last progress. */
  attempts: number
  /** Why the whole task failed. */
  error: string | null
  /** When the status last changed. */
  changed_at_ms: number
  /** The context into which its principal grouped it. */
  context_id: string | null
}

/** Items that are processed together. */
interface TaskChunkTable {
  task_id: string
  /** Counts from 0. */
  number: number
  /** The index of its first item. */
  from_item: number
  /** JSON: a list. Emptied when done, because the items contain client data. */
  items: string
  /** JSON: one result for each item; `null` until they are done. */
  results: string | null
}

/** A URL that is notified of a task's status changes. */
export interface TaskCallbackTable {
  task_id: string
  /** Unique within its task. */
  id: string
  url: string
  /**
   * JSON, encrypted with a key that is not in the database: the credentials that
   * we send; `null`: no credentials.
   */
  sealed: string | null
  created_at_ms: number
  /** The status that was sent last. */
  told: TaskStatus
  /** The number of failed attempts in a row. */
  attempts: number
  /** No attempt before then; `null`: nothing to send. */
  next_at_ms: number | null
  /** Why the last attempt failed. */
  error: string | null
}

export type TaskStatus = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'
