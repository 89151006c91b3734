import { useEffect, useState } from 'preact/hooks'
import { ago, full } from './format.ts'

/** A relative time. Pointing at it shows the full time in the reader's zone. */
export function Time({ at, none = 'never' }: { readonly at: string | null; readonly none?: string }) {
  useTicks(at === null ? null : 10_000)
  if (at === null) return <>{none}</>
  return (
    <time dateTime={at} title={full(at)}>
      {ago(at, Date.now())}
    </time>
  )
}

export function FullTime({ at }: { readonly at: string }) {
  return <time dateTime={at}>{full(at)}</time>
}

/** Redraws a component periodically. */
function useTicks(everyMs: number | null): void {
  const [, setTick] = useState(0)
  useEffect(() => {
    if (everyMs === null) return
    const timer = setInterval(() => setTick((tick) => tick + 1), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
}
