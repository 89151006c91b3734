import { setTimeout as wait } from 'node:timers/promises'

/** Whether it came to be so within the time. */
export async function until(isSo: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean> {
  const deadlineMs = performance.now() + withinMs
  for (;;) {
    if (await isSo()) return true
    if (performance.now() > deadlineMs) return false
    await wait(POLL_MS)
  }
}

const POLL_MS = 100
