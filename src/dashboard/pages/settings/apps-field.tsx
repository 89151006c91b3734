import { Field } from '../../parts/field.tsx'
import { textOf } from '../../parts/form.tsx'

type Apps = readonly string[] | '*'

/** The apps whose objects a key, a client, a user or an agent may see. */
export function AppsField({
  apps = null,
  error,
}: {
  readonly apps?: Apps | null
  readonly error: string | null
}) {
  const value = apps === null ? '' : appsText(apps)
  return (
    <Field
      label="Apps"
      hint="Ids, separated by commas. * is all apps. Leave empty for your own apps."
      error={error}
    >
      {(tied) => <input {...tied} name="apps" defaultValue={value} autocomplete="off" />}
    </Field>
  )
}

/** `undefined`: the field is empty. */
export function appsIn(data: FormData): Apps | undefined {
  const text = textOf(data, 'apps')
  if (text === undefined || text === '*') return text
  return text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
}

export function appsText(apps: Apps): string {
  return apps === '*' ? apps : apps.join(', ')
}
