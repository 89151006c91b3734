import { useCallback, useEffect, useState } from 'preact/hooks'
import { IN_BROWSER } from '../parts/kept.ts'

/** `first`: shown by itself. `asked`: the user started it. */
export type TourReason = 'first' | 'asked'

/** Starts the tour again. */
export function startTour(): void {
  dispatchEvent(new Event(STARTED))
}

/** Whether the tour is shown: once per browser, on the first page that is the Overview, and when it is started again. */
export function useTour(isOverview: boolean): { readonly tour: TourReason | null; endTour(): void } {
  const [tour, setTour] = useState<TourReason | null>(null)
  useEffect(() => {
    if (!isOverview || IN_BROWSER.get(PLACE) !== null) return
    IN_BROWSER.set(PLACE, 'shown')
    setTour('first')
  }, [isOverview])
  useEffect(() => {
    const started = () => setTour('asked')
    addEventListener(STARTED, started)
    return () => removeEventListener(STARTED, started)
  }, [])
  return { tour, endTour: useCallback(() => setTour(null), []) }
}

const STARTED = 'gatehouse-tour'
const PLACE = 'gatehouse.tour'
