import { useEffect, useState } from 'preact/hooks'
import type { StreamEvent } from '../../../wire/event-stream.ts'
import { ask } from '../../api/ask.ts'
import { listen } from '../../api/listen.ts'
import type { ApiProblem } from '../../api/problem.ts'
import {
  emptySeconds,
  type MinuteOfTraffic,
  type Seconds,
  type TrafficSample,
  withMinutes,
  withSecond,
} from '../../../manage/intake/traffic.ts'

export interface HeardTraffic {
  readonly seconds: Seconds
  readonly isOpen: boolean
  readonly problem: ApiProblem | null
}

/** Traffic per second, from the stream. Before it and in its gaps: averages of minutes, from the statistics. */
export function useTraffic(): HeardTraffic {
  const [seconds, setSeconds] = useState(() => emptySeconds(Date.now(), PLACES))
  const [state, setState] = useState<Omit<HeardTraffic, 'seconds'>>({ isOpen: false, problem: null })
  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    const fill = async () => {
      // Without them, the seconds stay unknown. The stream shows connection problems.
      const minutes = await minutesOf(AbortSignal.any([signal, AbortSignal.timeout(FILL_MS)])).catch(() => [])
      setSeconds((before) => withMinutes(before, minutes))
    }
    let hasListened = false
    // Connected again, and the gap is not filled yet.
    let isBehind = false
    const stream = {
      events: (events: readonly StreamEvent[]) => {
        const samples = events
          .filter(({ event }) => event === 'traffic')
          .map(({ data }) => (JSON.parse(data) as { data: TrafficSample }).data)
        if (samples.length === 0) return
        setSeconds((before) =>
          samples.reduce((seconds, traffic) => withSecond(seconds, Date.now(), traffic), before),
        )
        if (isBehind) void fill()
        isBehind = false
      },
      state: (isOpen: boolean, problem: ApiProblem | null) => {
        setState({ isOpen, problem })
        isBehind = isOpen && hasListened
        hasListened = true
      },
    }
    // Filled before it listens, so that no request is counted twice.
    void fill().then(() => listen('listEvents', { types: 'traffic' }, stream, signal))
    return () => stop.abort()
  }, [])
  return { seconds, ...state }
}

/** The newest minutes. The last one is not over. */
async function minutesOf(signal: AbortSignal): Promise<readonly MinuteOfTraffic[]> {
  const query = { window: '1h', bucket: '1m' } as const
  const { series, generated_at } = await ask('getStats', { query }, { signal })
  const serverS = Math.floor(Date.parse(generated_at) / 1_000)
  // The seconds are those of this computer, whose clock may be another.
  const aheadS = Math.floor(Date.now() / 1_000) - serverS
  return series.slice(-MINUTES).map(({ at, requests, by_verdict, by_action }) => {
    const atS = Date.parse(at) / 1_000
    const endS = Math.min(atS + 60, serverS)
    return { atS: atS + aheadS, endS: endS + aheadS, requests, by_verdict, by_action }
  })
}

/** Without an answer by then, it listens. */
const FILL_MS = 3_000
/** One more than is shown: the first one is shown in part. */
const MINUTES = 6
/** Five minutes. */
const PLACES = 300
