import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { counted } from './format.ts'

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

export interface FilterField<Name extends string = string> {
  readonly name: Name
  readonly label: string
  /** The values to choose from. Default: any text. */
  readonly choices?: readonly string[]
  /** Text of the option for no choice. */
  readonly all?: string
  /** A time, in the reader's zone. */
  readonly isTime?: boolean
  /** Shown only with a value. */
  readonly isRare?: boolean
}

interface FieldsProps<Name extends string> {
  readonly fields: readonly FilterField<Name>[]
  readonly values: Readonly<Record<Name, string>>
  set(name: Name, value: string): void
  /** Further controls. */
  readonly children?: ComponentChildren
}

/** The filters of a list as a row of fields. */
export function FilterFields<Name extends string>({ fields, values, set, children }: FieldsProps<Name>) {
  const shown = fields.filter(({ name, isRare = false }) => !isRare || values[name] !== '')
  return (
    <search>
      <div class="filters">
        {shown.map(({ name, label, choices, all, isTime = false }) => {
          const props = { label, value: values[name], set: (value: string) => set(name, value) }
          if (choices !== undefined)
            return (
              <ChoiceFilter key={name} {...props} choices={choices} {...(all !== undefined && { all })} />
            )
          return isTime ? <TimeFilter key={name} {...props} /> : <TextFilter key={name} {...props} />
        })}
        {children}
      </div>
    </search>
  )
}

/**
 * The part of an API query that these filters stand for. The server checks the values, which anyone may write into
 * the address.
 */
export function filterQuery<Query extends object>(
  fields: readonly FilterField[],
  values: Readonly<Record<string, string>>,
): Query {
  const given = fields.flatMap(({ name, isTime = false }) => {
    const value = values[name] ?? ''
    const sent = isTime ? utcOf(value) : value
    return sent === '' ? [] : [[name, sent] as const]
  })
  return Object.fromEntries(given) as Query
}

/** Of a time in the reader's zone; empty: invalid. */
function utcOf(local: string): string {
  const at = new Date(local)
  return Number.isNaN(at.getTime()) ? '' : at.toISOString()
}

interface FreshProps {
  readonly count: number
  /** What there is more of: `event`. */
  readonly of: string
  show(): void
}

/** Offers to load a list again that has new items. */
export function Fresh({ count, of, show }: FreshProps) {
  return (
    <>
      {count > 0 && (
        <button type="button" class="main" onClick={show}>
          Show {counted(count, `new ${of}`)}
        </button>
      )}
      <span class="hidden" role="status">
        {count > 0 ? counted(count, `new ${of}`) : ''}
      </span>
    </>
  )
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
