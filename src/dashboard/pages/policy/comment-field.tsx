import { Field } from '../../parts/field.tsx'

/** Why a policy is changed. */
export function CommentField({
  value,
  set,
}: {
  readonly value: string
  readonly set: (value: string) => void
}) {
  return (
    <Field label="Comment" hint="Optional. It stands in the list of versions and in the audit log.">
      {(tied) => (
        <input
          {...tied}
          maxLength={LENGTH_MAX}
          value={value}
          onInput={({ currentTarget }) => set(currentTarget.value)}
        />
      )}
    </Field>
  )
}

/** As in the API. */
const LENGTH_MAX = 500
