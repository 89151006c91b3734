import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

interface Props {
  readonly title: string
  /** An introduction for first-time visitors. */
  readonly about?: ComponentChildren
  /** The page of the manual about this, and its section: `policy` or `policy#rules`. */
  readonly help?: string
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

/** A page. Its heading gets the focus on arrival, so that a screen reader announces the page. */
export function Page({ title, about, help, actions, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · Gatehouse`
  }, [title])
  useEffect(() => heading.current?.focus({ preventScroll: true }), [])
  return (
    <>
      <header class="page-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {about !== undefined && <p class="about">{about}</p>}
        </div>
        {(actions !== undefined || help !== undefined) && (
          <div class="actions">
            {actions}
            {help !== undefined && (
              <a class="button" href={`/dashboard/help/${help}`} aria-label={`Help: ${title}`}>
                Help
              </a>
            )}
          </div>
        )}
      </header>
      {children}
    </>
  )
}
