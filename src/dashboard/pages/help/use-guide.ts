import { send } from '../../api/ask.ts'
import { type UsedAnswer, useLoaded } from '../../api/use-asked.ts'

/** A page of the manual. */
export interface Topic {
  readonly topic: string
  readonly title: string
  readonly about: string
}

/** The list of pages. */
export function useTopics(): UsedAnswer<readonly Topic[]> {
  return useLoaded('', async (signal) => {
    const response = await send('/dashboard/guide/index.json', { signal })
    return { value: (await response.json()).pages, tag: null }
  })
}

/** A page as Markdown. */
export function useTopic(topic: string): UsedAnswer<string> {
  return useLoaded(topic, async (signal) => {
    const response = await send(`/dashboard/guide/${encodeURIComponent(topic)}.md`, { signal })
    return { value: await response.text(), tag: null }
  })
}
