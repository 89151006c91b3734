import type { ComponentChildren } from 'preact'
import type { Doing } from '../api/use-doing.ts'
import { ProblemNote } from './states.tsx'

interface Props {
  readonly doing: Doing
  /** The button text. */
  readonly submit: string
  readonly label: string
  readonly children: ComponentChildren
  /** Throws an ApiProblem. */
  done(data: FormData, form: HTMLFormElement): Promise<void>
  cancel?(): void
}

/** A form with fields, a button and error messages. */
export function Form({ doing, submit, label, children, done, cancel }: Props) {
  return (
    <form
      aria-label={label}
      onSubmit={(event) => {
        event.preventDefault()
        const form = event.currentTarget
        void doing.run(() => done(new FormData(form), form))
      }}
    >
      {doing.problem !== null && <ProblemNote problem={doing.problem} />}
      {children}
      <p class="actions">
        <button type="submit" class="main" disabled={doing.isDoing}>
          {submit}
        </button>
        {cancel !== undefined && (
          <button type="button" onClick={cancel}>
            Cancel
          </button>
        )}
      </p>
    </form>
  )
}

/** The trimmed value of a field; `undefined`: empty. */
export function textOf(data: FormData, name: string): string | undefined {
  const text = String(data.get(name) ?? '').trim()
  return text === '' ? undefined : text
}
