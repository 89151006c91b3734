import { useEffect, useState } from 'preact/hooks'
import { listen } from '../../api/listen.ts'
import type { ApiProblem } from '../../api/problem.ts'
import { emptySeconds, type Seconds, type TrafficSample, withSecond } from '../../../manage/intake/traffic.ts'

export interface HeardTraffic {
  readonly seconds: Seconds
  readonly isOpen: boolean
  readonly problem: ApiProblem | null
}

/** Traffic per second, from the stream. */
export function useTraffic(): HeardTraffic {
  const [seconds, setSeconds] = useState(() => emptySeconds(Date.now(), PLACES))
  const [state, setState] = useState<Omit<HeardTraffic, 'seconds'>>({ isOpen: false, problem: null })
  useEffect(() => {
    const stop = new AbortController()
    void listen(
      'listEvents',
      { types: 'traffic' },
      {
        event: ({ event, data }) => {
          if (event !== 'traffic') return
          const { data: traffic } = JSON.parse(data) as { data: TrafficSample }
          setSeconds((before) => withSecond(before, Date.now(), traffic))
        },
        state: (isOpen, problem) => setState({ isOpen, problem }),
      },
      stop.signal,
    )
    return () => stop.abort()
  }, [])
  return { seconds, ...state }
}

/** Five minutes. */
const PLACES = 300
