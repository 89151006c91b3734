import { useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import type { SettingChanges, Setting } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Field } from '../../parts/field.tsx'
import { Filters, TextFilter, useFilters } from '../../parts/filters.tsx'
import { Form, textOf } from '../../parts/form.tsx'
import { Answered, Empty } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'

/** All settings: those that can change at runtime, and the source of the others. */
export function Limits() {
  const used = useAsked('getSettings', {})
  const { values, set } = useFilters(['q'])
  const wanted = values.q.toLowerCase()
  return (
    <section aria-labelledby="list">
      <h2 id="list">All settings</h2>
      <Answered used={used}>
        {({ settings }) => (
          <>
            {settings
              .filter(({ changeable }) => changeable)
              .map((setting) => (
                <Changeable
                  key={`${setting.name} ${JSON.stringify(setting.value)}`}
                  setting={setting}
                  tag={used.tag}
                  again={used.again}
                />
              ))}
            <h3>Settings that need a restart</h3>
            <Filters>
              <TextFilter label="Contains" value={values.q} set={(value) => set('q', value)} />
            </Filters>
            <Others
              settings={settings.filter(
                ({ changeable, name, description }) =>
                  !changeable && `${name} ${description}`.toLowerCase().includes(wanted),
              )}
            />
          </>
        )}
      </Answered>
    </section>
  )
}

interface Props {
  readonly setting: Setting
  readonly tag: string | null
  again(): void
}

function Changeable({ setting: { name, value, origin, configured, description }, tag, again }: Props) {
  const doing = useDoing()
  const [said, setSaid] = useState<string | null>(null)
  const change = async (to: unknown) => {
    const options = tag === null ? {} : { ifMatch: tag }
    await ask('updateSettings', { body: { [name]: to } as SettingChanges }, options)
    setSaid('Saved and in force.')
    again()
  }
  return (
    <div class="card">
      <Form
        label={name}
        submit="Change"
        doing={doing}
        done={(data) => change(read(textOf(data, 'value') ?? '', configured))}
      >
        <Field label={name} hint={`${description} Source: ${origin}.`} error={doing.errorAt(`/${name}`)}>
          {(tied) =>
            typeof configured === 'boolean' ? (
              <select {...tied} name="value">
                {['true', 'false'].map((each) => (
                  <option key={each} value={each} selected={each === String(value)}>
                    {each}
                  </option>
                ))}
              </select>
            ) : (
              <input {...tied} name="value" required defaultValue={String(value)} />
            )
          }
        </Field>
      </Form>
      {origin === 'api' && (
        <button type="button" onClick={() => void doing.run(() => change(null))}>
          Reset to the configured value: {String(configured)}
        </button>
      )}
      <p role="status">{said}</p>
    </div>
  )
}

/** Converts the text to the type of the configured value. */
function read(text: string, configured: unknown): unknown {
  if (typeof configured === 'boolean') return text === 'true'
  return typeof configured === 'number' && /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text
}

function Others({ settings }: { readonly settings: readonly Setting[] }) {
  if (settings.length === 0) return <Empty title="No matching settings" />
  return (
    <div class="card">
      <Table
        label="Settings that need a restart"
        rows={settings}
        keyOf={({ name }) => name}
        columns={[
          {
            title: 'Setting',
            cell: ({ name, description }) => (
              <>
                <code>{name}</code>
                <div class="hint">{description}</div>
              </>
            ),
          },
          { title: 'Value', cell: ({ value }) => <code>{JSON.stringify(value)}</code> },
          { title: 'Source', isExtra: true, cell: ({ origin }) => origin },
        ]}
      />
    </div>
  )
}
