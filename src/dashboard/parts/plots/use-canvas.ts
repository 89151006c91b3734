import type { RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { THEME_CHANGED } from '../../shell/theme.ts'

type UPlotFile = typeof import('./uplot.ts')

/** Keeps a plot at the width of its element and in the current colours. A new `shape` creates a new plot. */
export function useCanvas(
  shape: string,
  make: (file: UPlotFile, element: HTMLElement) => uPlot,
): { readonly place: RefObject<HTMLDivElement | null>; readonly plot: { current: uPlot | null } } {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const latest = useRef(make)
  latest.current = make
  // `shape` covers everything that requires a new plot.
  useEffect(() => {
    const element = place.current
    if (element === null) return
    let isGone = false
    const repaint = () => plot.current?.redraw(false)
    const observer = new ResizeObserver(() => {
      requestAnimationFrame(() =>
        plot.current?.setSize({ width: element.clientWidth, height: element.clientHeight }),
      )
    })
    void import('./uplot.ts').then((file) => {
      if (isGone) return
      plot.current = latest.current(file, element)
      observer.observe(element)
    })
    addEventListener(THEME_CHANGED, repaint)
    const system = matchMedia('(prefers-color-scheme: dark)')
    system.addEventListener('change', repaint)
    return () => {
      isGone = true
      removeEventListener(THEME_CHANGED, repaint)
      system.removeEventListener('change', repaint)
      observer.disconnect()
      plot.current?.destroy()
      plot.current = null
    }
  }, [shape])
  return { place, plot }
}
