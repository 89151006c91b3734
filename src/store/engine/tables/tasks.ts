export interface TaskTables {
  tasks: TaskTable
  task_chunks: TaskChunkTable
  task_callbacks: TaskCallbackTable
}

/** A piece of work on many items. */
export interface TaskTable {
  id: string
  /** Whose it is. */
  principal: string
  type: string
  status: TaskStatus
  /** Items in it, those that are done, and those of them that failed. */
  total: number
  completed: number
  failed: number
  created_at_ms: number
  started_at_ms: number | null
  finished_at_ms: number | null
  /** Which process works on it, and until when nobody else may; null: nobody does. */
  lease_owner: string | null
  lease_until_ms: number | null
  /** How often it was begun since something of it was last done. */
  attempts: number
  /** Why it failed as a whole. */
  error: string | null
  /** When its status became what it is. */
  changed_at_ms: number
  /** What its principal has put it together with. */
  context_id: string | null
}

/** Some of its items, which are done together. */
export interface TaskChunkTable {
  task_id: string
  /** From 0. */
  number: number
  /** Of its first item. */
  from_item: number
  /** JSON: a list; empty once they are done, for they hold what others have sent. */
  items: string
  /** JSON: a list of as many; null until they are done. */
  results: string | null
}

/** Where somebody wants to be told when the status of a task changes. */
export interface TaskCallbackTable {
  task_id: string
  /** Of those of its task. */
  id: string
  url: string
  /** JSON, encrypted with a key that is not in the database: what proves there that it is us; null: nothing does. */
  sealed: string | null
  created_at_ms: number
  /** The status that was told last. */
  told: TaskStatus
  /** How often in a row it could not be told. */
  attempts: number
  /** Before then nobody tells it anything; null: there is nothing to tell. */
  next_at_ms: number | null
  /** Why it could not be told the last time. */
  error: string | null
}

export type TaskStatus = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'
