import { useState } from 'preact/hooks'
import { Field, type Tied } from '../../../parts/field.tsx'
import type { FieldKind, RuleField } from './fields.ts'
import { kindFor, textOf, valueIn } from './values.ts'

interface Props {
  readonly field: RuleField
  readonly value: unknown
  readonly error: string | null
  /** `undefined`: the input is empty. */
  set(value: unknown): void
}

/** An input for a member of a rule. */
export function RuleInput({ field, value, error, set }: Props) {
  const kind = kindFor(field, value)
  const [typed, setTyped] = useState('')
  // What is typed stays as it is, with its blanks, as long as it means the value.
  const given = textOf(kind, value)
  const text = given === textOf(kind, valueIn(kind, typed)) ? typed : given
  const enter = (next: string) => {
    setTyped(next)
    set(valueIn(kind, next))
  }
  const { label, hint, choices = [] } = field
  if (kind === 'choices')
    return (
      <Boxes
        legend={label}
        choices={choices}
        chosen={given.split('\n')}
        error={error}
        set={(chosen) => enter(chosen.join('\n'))}
      />
    )
  if (kind === 'check')
    return (
      <p class="field">
        <label>
          <input
            type="checkbox"
            checked={value === true}
            onChange={({ currentTarget }) => set(currentTarget.checked || undefined)}
          />{' '}
          {label}
        </label>
      </p>
    )
  const isOther = text !== '' && choices.length > 0 && !choices.includes(text)
  const options = kind === 'yes-no' ? ['true', 'false'] : isOther ? [] : choices
  return (
    <Field label={label} hint={hint} error={error}>
      {(tied) =>
        options.length > 0 ? (
          <select {...tied} value={text} onChange={({ currentTarget }) => enter(currentTarget.value)}>
            {kind !== 'yes-no' && <option value="">default</option>}
            {options.map((each) => (
              <option key={each} value={each}>
                {kind === 'yes-no' ? (each === 'true' ? 'yes' : 'no') : each}
              </option>
            ))}
          </select>
        ) : (
          <Typed tied={tied} text={text} isLong={isLong(field, kind, text)} enter={enter} />
        )
      }
    </Field>
  )
}

function Typed({
  tied,
  text,
  isLong,
  enter,
}: {
  readonly tied: Tied
  readonly text: string
  readonly isLong: boolean
  readonly enter: (text: string) => void
}) {
  const props = {
    ...tied,
    spellcheck: false,
    value: text,
    onInput: ({ currentTarget }: { readonly currentTarget: { readonly value: string } }) =>
      enter(currentTarget.value),
  }
  return isLong ? (
    <textarea {...props} class="short" rows={Math.min(8, text.split('\n').length + 1)} />
  ) : (
    <input {...props} />
  )
}

function isLong(field: RuleField, kind: FieldKind, text: string): boolean {
  const hasLines = kind === 'lines' || kind === 'words' || kind === 'pairs' || kind === 'json'
  return hasLines || field.isLong === true || text.includes('\n')
}

interface BoxesProps {
  readonly legend: string
  readonly choices: readonly string[]
  readonly chosen: readonly string[]
  readonly error: string | null
  set(chosen: readonly string[]): void
}

function Boxes({ legend, choices, chosen, error, set }: BoxesProps) {
  return (
    <fieldset>
      <legend>{legend}</legend>
      <div class="choices">
        {choices.map((each) => (
          <label key={each}>
            <input
              type="checkbox"
              checked={chosen.includes(each)}
              onChange={({ currentTarget }) =>
                set(choices.filter((one) => (one === each ? currentTarget.checked : chosen.includes(one))))
              }
            />{' '}
            {each}
          </label>
        ))}
      </div>
      {error !== null && <p class="hint wrong">{error}</p>}
    </fieldset>
  )
}
