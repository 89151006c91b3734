interface Props<Value extends string> {
  readonly legend: string
  readonly name: string
  readonly values: readonly { readonly value: Value; readonly about?: string }[]
  readonly chosen?: readonly string[]
  readonly hint?: string
  readonly error?: string | null
}

/** A group of checkboxes. */
export function Choices<Value extends string>({
  legend,
  name,
  values,
  chosen = [],
  hint,
  error,
}: Props<Value>) {
  return (
    <fieldset>
      <legend>{legend}</legend>
      <div class="choices">
        {values.map(({ value, about }) => (
          <label key={value}>
            <input type="checkbox" name={name} value={value} defaultChecked={chosen.includes(value)} />{' '}
            {value}
            {about !== undefined && <small> {about}</small>}
          </label>
        ))}
      </div>
      {(error ?? hint) !== undefined && <p class={error ? 'hint wrong' : 'hint'}>{error ?? hint}</p>}
    </fieldset>
  )
}

/** The scopes of a principal. */
export const SCOPE_CHOICES = [
  { value: 'read', about: 'view data' },
  { value: 'detect', about: 'classify requests' },
  { value: 'write', about: 'submit signatures' },
  { value: 'mcp', about: 'use MCP tools' },
  { value: 'admin', about: 'full access' },
] as const
