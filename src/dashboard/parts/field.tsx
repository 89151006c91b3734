import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

interface Props {
  readonly label: string
  readonly hint?: ComponentChildren
  /** The problem of the entered value. */
  readonly error?: string | null
  /** Receives the attributes that link the input to its label, hint and error. */
  readonly children: (tied: Tied) => ComponentChildren
}

export interface Tied {
  readonly id: string
  readonly 'aria-describedby': string
  readonly 'aria-invalid': boolean
}

/** A form field. */
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
