import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { useLocation } from 'preact-iso'

/** Filters of a list. Their values are in the address, so that a link can be shared. */
export function useFilters<Name extends string>(names: readonly Name[]) {
  const { query, path, route } = useLocation()
  const values = Object.fromEntries(names.map((name) => [name, query[name] ?? ''])) as Record<Name, string>
  const set = (name: Name, value: string) => {
    const next = new URLSearchParams(query)
    if (value === '') next.delete(name)
    else next.set(name, value)
    const text = next.toString()
    route(`${path}${text === '' ? '' : `?${text}`}`, true)
  }
  return { values, set }
}

export function Filters({ children }: { readonly children: ComponentChildren }) {
  return (
    <search>
      <div class="filters">{children}</div>
    </search>
  )
}

interface TextProps {
  readonly label: string
  readonly value: string
  set(value: string): void
}

/** Applied when editing is finished: the list does not reload at each letter. */
export function TextFilter({ label, value, set }: TextProps) {
  return (
    <Labelled label={label}>
      {(id) => (
        <input
          id={id}
          type="search"
          value={value}
          onChange={({ currentTarget }) => set(currentTarget.value.trim())}
        />
      )}
    </Labelled>
  )
}

/** In the reader's local time. */
export function TimeFilter({ label, value, set }: TextProps) {
  return (
    <Labelled label={label}>
      {(id) => (
        <input
          id={id}
          type="datetime-local"
          value={value}
          onChange={({ currentTarget }) => set(currentTarget.value)}
        />
      )}
    </Labelled>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly choices: readonly string[]
  /** Text of the option for no choice. */
  readonly all?: string
  set(value: string): void
}

export function ChoiceFilter({ label, value, choices, all = 'all', set }: ChoiceProps) {
  return (
    <Labelled label={label}>
      {(id) => (
        <select id={id} value={value} onChange={({ currentTarget }) => set(currentTarget.value)}>
          <option value="">{all}</option>
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  )
}

function Labelled({
  label,
  children,
}: {
  readonly label: string
  readonly children: (id: string) => ComponentChildren
}) {
  const id = useId()
  return (
    <div>
      <label for={id}>{label}</label>
      {children(id)}
    </div>
  )
}
