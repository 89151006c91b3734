import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

interface Props {
  readonly label: string
  readonly hint?: ComponentChildren
  /** What is wrong with what was given. */
  readonly error?: string | null
  /** Gets what ties it to the label, the hint and the error. */
  readonly children: (tied: Tied) => ComponentChildren
}

export interface Tied {
  readonly id: string
  readonly 'aria-describedby': string
  readonly 'aria-invalid': boolean
}

/** Something to fill in. */
export function Field({ label, hint, error = null, children }: Props) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': `${id}-hint`, 'aria-invalid': error !== null })}
      <p id={`${id}-hint`} class={error === null ? 'hint' : 'hint wrong'}>
        {error ?? hint}
      </p>
    </div>
  )
}
