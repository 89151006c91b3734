import { send } from '../../api/ask.ts'
import { type UsedAnswer, useLoaded } from '../../api/use-asked.ts'
import { type ManualSection, sectionsOf } from './manual-search.ts'
import type { Topic } from './topic.ts'

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

/** Every section of the manual. */
export function useSections(): UsedAnswer<readonly ManualSection[]> {
  return useLoaded('', async (signal) => {
    const text = async (path: string) => (await send(`/dashboard/guide/${path}`, { signal })).text()
    const { pages } = JSON.parse(await text('index.json')) as { readonly pages: readonly Topic[] }
    const sections = await Promise.all(
      pages.map(async ({ topic, title }) =>
        sectionsOf(topic, title, await text(`${encodeURIComponent(topic)}.md`)),
      ),
    )
    return { value: sections.flat(), tag: null }
  })
}
