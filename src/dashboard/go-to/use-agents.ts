import { ask } from '../api/ask.ts'
import { type UsedAnswer, useLoaded } from '../api/use-asked.ts'
import type { Destination } from './choices.ts'

interface Found {
  /** The text that they were found for. */
  readonly text: string
  readonly agents: readonly Destination[]
}

/** The agents with a name like the text. A search begins when the typing pauses, and ends when it goes on. */
export function useAgents(text: string, isReader: boolean): UsedAnswer<Found> {
  const q = isReader && text.length >= TEXT_MIN && text.length <= TEXT_MAX ? text : ''
  return useLoaded(q, async (signal) => {
    if (q === '') return { value: { text, agents: [] }, tag: null }
    await pause(signal)
    const { agents } = await ask('listAgents', { query: { q, limit: FOUND_MAX } }, { signal })
    const places = agents.map(({ id, name, category }) => ({
      title: name,
      about: category,
      href: `/dashboard/agents/${encodeURIComponent(id)}`,
    }))
    return { value: { text: q, agents: places }, tag: null }
  })
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, PAUSE_MS)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })
}

const PAUSE_MS = 200
const TEXT_MIN = 2
const TEXT_MAX = 100
const FOUND_MAX = 6
