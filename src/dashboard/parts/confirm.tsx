import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

interface Props {
  readonly title: string
  /** The text of the confirming button. */
  readonly doing: string
  readonly isBad?: boolean
  readonly children: ComponentChildren
  done(): void
  cancel(): void
}

/** Asks before an irreversible action. Escape cancels. */
export function Confirm({ title, doing, isBad = false, children, done, cancel }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current!.showModal(), [])
  return (
    <dialog ref={dialog} aria-labelledby="confirm-title" onClose={cancel}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          done()
        }}
      >
        <h2 id="confirm-title">{title}</h2>
        {children}
        <p class="actions">
          <button type="submit" class={isBad ? 'bad' : 'main'}>
            {doing}
          </button>
          <button type="button" onClick={cancel}>
            Cancel
          </button>
        </p>
      </form>
    </dialog>
  )
}
