import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'
import { shownTask } from './tasks.ts'
import type { ApiContext } from './context.ts'
import type { Following, ToolCaller } from '../jobs/tools.ts'

/**
 * Waits for the end of a task and reports its progress. If the caller cancels, the task is cancelled. If the
 * task takes longer than a client waits, the answer is its state at that time, and the task goes on.
 */
export async function followTask(
  begun: unknown,
  _caller: ToolCaller,
  { store, log, nowMs }: ApiContext,
  { progress, cancelled, gone }: Following,
): Promise<unknown> {
  const { task_id: id, finished_at } = begunTask.parse(begun)
  if (finished_at !== null) return begun
  const cancel = () => {
    store.tasks
      .cancel(id, nowMs())
      .catch((error: Error) => log.warn('failed to cancel a task', { task: id, error }))
  }
  if (cancelled.aborted) cancel()
  cancelled.addEventListener('abort', cancel, { once: true })
  try {
    let said = -1
    const untilMs = performance.now() + FOLLOWED_MS
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * PAUSE_GROWTH, PAUSE_MS_MAX)) {
      const task = await store.tasks.byId(id)
      if (task === null) return begun
      if (task.completed > said) progress(task.completed, task.total)
      said = task.completed
      if (task.finishedAtMs !== null || gone.aborted || performance.now() > untilMs) return shownTask(task)
      await wait(pauseMs, undefined, { signal: gone }).catch(() => undefined)
    }
  } finally {
    cancelled.removeEventListener('abort', cancel)
  }
}

const begunTask = z.looseObject({ task_id: z.string(), finished_at: z.string().nullable() })
/** Short at first, because most tasks are short. Then longer, so that many waiting clients are no load. */
const PAUSE_MS = 100
const PAUSE_GROWTH = 1.3
const PAUSE_MS_MAX = 2_000
/** By then clients have given up. */
const FOLLOWED_MS = 300_000
