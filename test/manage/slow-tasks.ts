import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'
import { createLogTo } from '../../src/shared/log.ts'
import type { Snapshot } from '../../src/plane/snapshot.ts'
import type { JobsContext } from '../../src/manage/jobs/context.ts'
import { Refusal } from '../../src/manage/http/refusal.ts'
import type { TaskType } from '../../src/manage/jobs/task-types.ts'
import type { Store } from '../../src/store/store.ts'

/** A type whose items are numbers, of which each takes so long, and the odd ones fail. */
export function slowTypes(itemMs: number): ReadonlyMap<string, TaskType<unknown>> {
  const type: TaskType<unknown> = {
    ...{ type: 'slow', title: '', description: '', itemsMax: 10_000, atOnceMax: 0 },
    tool: {
      ...{ name: 'slow', title: '', description: '', scopes: ['detect'], protocols: ['rest'] },
      annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
      input: z.number(),
      output: z.number(),
      run: async (given) => {
        if (itemMs > 0) await wait(itemMs)
        if ((given as number) % 2 === 1) throw new Refusal('not_found', 'odd')
        return { twice: (given as number) * 2 }
      },
    },
  }
  return new Map([['slow', type]])
}

/** What a runner needs of it. */
export function slowManagement(store: Store): Pick<JobsContext, 'store' | 'log' | 'snapshot' | 'nowMs'> {
  return {
    store,
    log: createLogTo('error', process.stderr),
    snapshot: () => ({ knowledge: {} }) as unknown as Snapshot,
    nowMs: Date.now,
  }
}
