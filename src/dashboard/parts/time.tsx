import { useEffect, useState } from 'preact/hooks'
import { ago, full } from './format.ts'

/** How long ago; in full, in the reader's zone, for who points at it. */
export function Time({ at, none = 'never' }: { readonly at: string | null; readonly none?: string }) {
  useTicks(at === null ? null : 10_000)
  if (at === null) return <>{none}</>
  return (
    <time dateTime={at} title={full(at)}>
      {ago(at, Date.now())}
    </time>
  )
}

/** The time in full. */
export function FullTime({ at }: { readonly at: string }) {
  return <time dateTime={at}>{full(at)}</time>
}

/** Draws a component anew now and then. */
function useTicks(everyMs: number | null): void {
  const [, setTick] = useState(0)
  useEffect(() => {
    if (everyMs === null) return
    const timer = setInterval(() => setTick((tick) => tick + 1), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
}
