import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Destination } from '../go-to/choices.ts'
import { isInField } from '../shell/keys.ts'
import { TOUR_STEPS } from './steps.ts'
import './tour.css'

interface Props {
  /** The pages that the user may open. */
  readonly pages: readonly Destination[]
  /** The user asked for it, so it gets the focus. */
  readonly isAsked: boolean
  /** Called with the path of the page that a step is about. */
  show(path: string): void
  end(): void
}

/** Which question each main page answers. It stands beside the page, which can be used meanwhile. */
export function Tour({ pages, isAsked, show, end }: Props) {
  const id = useId()
  const card = useRef<HTMLElement>(null)
  const [at, setAt] = useState(0)
  const steps = TOUR_STEPS.flatMap((step) => {
    const page = pages.find(({ href }) => href.split('?', 1)[0] === step.path)
    return page === undefined ? [] : [{ ...step, href: page.href }]
  })
  const step = steps[Math.min(at, steps.length - 1)]
  const isLast = at >= steps.length - 1
  const path = step?.path ?? ''
  useEffect(() => show(path), [path, show])
  // A layout effect ends before its card is removed, and the focus must not be lost with it.
  useLayoutEffect(() => {
    const before = document.activeElement
    const own = card.current
    if (isAsked) own?.focus()
    const pressed = (event: KeyboardEvent) => {
      const isFree = document.querySelector('dialog[open]') === null && !isInField(event)
      if (event.key === 'Escape' && !event.defaultPrevented && isFree) end()
    }
    addEventListener('keydown', pressed)
    return () => {
      removeEventListener('keydown', pressed)
      if (own?.contains(document.activeElement)) focusAgain(before)
    }
  }, [isAsked, end])
  if (step === undefined) return null
  return (
    <section ref={card} class="tour card" aria-labelledby={id} tabIndex={-1}>
      <h2 id={id}>
        Tour <small>{`step ${at + 1} of ${steps.length}`}</small>
      </h2>
      <div aria-live="polite">
        <p>
          <strong>
            {step.title}: {step.question}
          </strong>
        </p>
        <p>{step.answer}</p>
      </div>
      <p class="actions">
        <button type="button" class="main" onClick={() => (isLast ? end() : setAt(at + 1))}>
          {isLast ? 'Done' : 'Next'}
        </button>
        {at > 0 && (
          <button type="button" onClick={() => setAt(at - 1)}>
            Back
          </button>
        )}
        <a class="button" href={step.href}>
          Open {step.title}
        </a>
        {!isLast && (
          <button type="button" class="quiet" onClick={end}>
            Skip
          </button>
        )}
      </p>
    </section>
  )
}

/** Where it was, or the heading of the page if that is gone. */
function focusAgain(before: Element | null): void {
  const isThere = before instanceof HTMLElement && before.isConnected && before !== document.body
  const place = isThere ? before : document.querySelector<HTMLElement>('main h1')
  place?.focus({ preventScroll: true })
}
