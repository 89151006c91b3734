import { Field } from '../../parts/field.tsx'

/** Selects a rate limit plan. */
export function PlanField({ error }: { readonly error: string | null }) {
  return (
    <Field label="Plan" error={error} hint="Default: unlimited for administrators, standard for others.">
      {(tied) => (
        <select {...tied} name="plan">
          <option value="">default</option>
          <option value="free">free</option>
          <option value="standard">standard</option>
          <option value="unlimited">unlimited</option>
        </select>
      )}
    </Field>
  )
}
