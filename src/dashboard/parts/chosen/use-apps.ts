import { ask } from '../../api/ask.ts'
import type { App } from '../../api/operations.ts'
import { type UsedAnswer, useLoaded } from '../../api/use-asked.ts'

/** All apps of the user. */
export function useApps(): UsedAnswer<readonly App[]> {
  return useLoaded('apps', async (signal) => ({ value: await allApps(signal), tag: null }))
}

export async function allApps(signal: AbortSignal): Promise<readonly App[]> {
  const found: App[] = []
  for (let page = 1; ; page++) {
    const { apps, total } = await ask('listApps', { query: { page, limit: PART } }, { signal })
    found.push(...apps)
    if (apps.length === 0 || found.length >= total) return found
  }
}

/** The API's maximum page size. */
const PART = 200
