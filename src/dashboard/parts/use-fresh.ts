import { useEffect, useRef, useState } from 'preact/hooks'
import { listen, type StreamId } from '../api/listen.ts'
import type { Operations } from '../api/operations.ts'
import type { StreamEvent } from '../../wire/event-stream.ts'

/**
 * The number of items since a list was loaded, from its stream: the list does not move while it is read. A
 * different `listKey` means that it was loaded again.
 */
export function useFresh<Id extends StreamId>(
  id: Id,
  query: Operations[Id]['query'],
  listKey: string,
  countOf: (told: StreamEvent) => number,
): number {
  const [count, setCount] = useState(0)
  const current = useRef({ query, countOf })
  current.current = { query, countOf }
  // `listKey` stands for the query.
  useEffect(() => {
    setCount(0)
    const stop = new AbortController()
    const events = (told: readonly StreamEvent[]) => {
      const more = told.reduce((sum, each) => sum + current.current.countOf(each), 0)
      if (more > 0) setCount((before) => before + more)
    }
    void listen(id, current.current.query, { events, state: () => undefined }, stop.signal)
    return () => stop.abort()
  }, [id, listKey])
  return count
}
