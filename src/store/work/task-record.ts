import type { Selectable } from 'kysely'
import type { AppList } from '../../apps/app-scope.ts'
import { storedApps } from '../engine/app-lists.ts'
import type { TaskStatus, TaskTable } from '../engine/tables/tasks.ts'

export interface TaskRecord {
  readonly id: string
  readonly principal: string
  /** The apps of the principal when it created the task. */
  readonly apps: AppList
  readonly type: string
  readonly status: TaskStatus
  readonly total: number
  readonly completed: number
  readonly failed: number
  readonly createdAtMs: number
  readonly startedAtMs: number | null
  readonly finishedAtMs: number | null
  readonly attempts: number
  readonly error: string | null
  /** When the status last changed. */
  readonly changedAtMs: number
  /** The context into which its principal grouped it; `null`: none. */
  readonly contextId: string | null
}

/** A filter of one principal's tasks. */
export interface TaskFilter {
  readonly contextId: string | null
  readonly status: TaskStatus | null
  /** Their status changed at or after this time. */
  readonly changedAfterMs: number | null
}

export interface NewTask {
  readonly id: string
  readonly principal: string
  readonly apps: AppList
  readonly type: string
  readonly atMs: number
  readonly chunks: readonly TaskItems[]
}

/** Items that are processed together. */
export interface TaskItems {
  readonly number: number
  /** The index of the first item in the task. */
  readonly from: number
  readonly items: readonly unknown[]
}

/** The results of a chunk. */
export interface ChunkDone {
  readonly number: number
  readonly results: readonly unknown[]
  readonly failed: number
}

/** The right to work on a task. No other process may until it expires. */
export interface Lease {
  readonly owner: string
  readonly nowMs: number
  readonly untilMs: number
}

export function columnsOf({ id, principal, apps, type, atMs, chunks }: NewTask) {
  const total = chunks.reduce((sum, { items }) => sum + items.length, 0)
  return { id, principal, apps: JSON.stringify(apps), type, total, created_at_ms: atMs, changed_at_ms: atMs }
}

export function taskRecord(row: Selectable<TaskTable>): TaskRecord {
  const { id, principal, type, status, total, completed, failed, attempts, error } = row
  return {
    id,
    principal,
    apps: storedApps(row.apps),
    type,
    status,
    total,
    completed,
    failed,
    attempts,
    error,
    createdAtMs: row.created_at_ms,
    startedAtMs: row.started_at_ms,
    finishedAtMs: row.finished_at_ms,
    changedAtMs: row.changed_at_ms,
    contextId: row.context_id,
  }
}
