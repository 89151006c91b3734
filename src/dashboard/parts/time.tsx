import { useEffect, useState } from 'preact/hooks'
import { ago, full } from './format.ts'

/** How long ago; in full, in the reader's zone, for who points at it. */
export function Time({ at, none = 'never' }: { readonly at: string | null; readonly none?: string }) {
  const nowMs = useNow(at === null ? null : 10_000)
  if (at === null) return <>{none}</>
  return (
    <time dateTime={at} title={full(at)}>
      {ago(at, nowMs)}
    </time>
  )
}

/** The time in full. */
export function FullTime({ at }: { readonly at: string }) {
  return <time dateTime={at}>{full(at)}</time>
}

function useNow(everyMs: number | null): number {
  const [nowMs, setNowMs] = useState(Date.now)
  useEffect(() => {
    if (everyMs === null) return
    const timer = setInterval(() => setNowMs(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return nowMs
}
