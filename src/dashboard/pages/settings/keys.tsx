import { useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import type { Key, KeyRequest, NewKey, Plan, Scope } from '../../api/operations.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Choices, SCOPE_CHOICES } from '../../parts/choices.tsx'
import { Field } from '../../parts/field.tsx'
import { Form, textOf } from '../../parts/form.tsx'
import { PART_LENGTH } from '../../parts/long-table.tsx'
import { Secret } from '../../parts/secret.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { AppsField, appsIn, appsText } from './apps-field.tsx'
import { KeptList } from './kept-list.tsx'
import { PlanField } from './plan-field.tsx'
import { TakeAway } from './take-away.tsx'

export function Keys() {
  const [made, setMade] = useState<NewKey | null>(null)
  return (
    <KeptList<Key>
      title="API keys"
      about="API keys for programs. Only a hash is stored."
      news={made !== null && <Secret label={`Key ${made.name} created.`} value={made.key} />}
      keyOf={({ id }) => id}
      load={async (page, signal) => {
        const { keys, total } = await ask('listKeys', { query: { page, limit: PART_LENGTH } }, { signal })
        return { rows: keys, total }
      }}
      columns={(again) => [
        { title: 'Name', width: 'minmax(8rem, 2fr)', cell: ({ name, id }) => <span title={id}>{name}</span> },
        {
          title: 'Scopes',
          width: 'minmax(6rem, 2fr)',
          isExtra: true,
          cell: ({ scopes }) => scopes.join(', '),
        },
        {
          title: 'Apps',
          width: 'minmax(4rem, 1fr)',
          isExtra: true,
          cell: ({ apps }) => appsText(apps),
        },
        { title: 'Plan', width: '6rem', isExtra: true, cell: ({ plan }) => plan },
        {
          title: 'Last used',
          width: '9rem',
          isExtra: true,
          cell: ({ last_used_at }) => <Time at={last_used_at} />,
        },
        {
          title: 'Expires',
          width: '9rem',
          isExtra: true,
          cell: ({ expires_at }) => <Time at={expires_at} />,
        },
        {
          title: 'Action',
          width: '6rem',
          cell: ({ id, name }) => (
            <TakeAway
              verb="Revoke"
              name={name}
              work={async () => {
                await ask('revokeKey', { path: { id } })
                again()
              }}
            >
              <p>The key stops working within a second, on every manager. This cannot be undone.</p>
            </TakeAway>
          ),
        },
      ]}
      make={{
        button: 'New key',
        form: (done, cancel) => (
          <NewKeyForm
            made={(key) => {
              setMade(key)
              done()
            }}
            cancel={cancel}
          />
        ),
      }}
      empty={
        <Empty title="No API keys yet">
          <p>The key in GATEHOUSE_ADMIN_KEY is not listed.</p>
        </Empty>
      }
    />
  )
}

function NewKeyForm({ made, cancel }: { readonly made: (key: NewKey) => void; readonly cancel: () => void }) {
  const doing = useDoing()
  return (
    <Form
      label="New key"
      submit="Create"
      doing={doing}
      cancel={cancel}
      done={async (data) => {
        const [ends, apps] = [textOf(data, 'expires_at'), appsIn(data)]
        const body: KeyRequest = {
          name: textOf(data, 'name') ?? '',
          scopes: data.getAll('scopes') as Scope[],
          ...(apps !== undefined && { apps }),
          ...(textOf(data, 'plan') !== undefined && { plan: textOf(data, 'plan') as Plan }),
          ...(ends !== undefined && { expires_at: new Date(ends).toISOString() }),
        }
        made(await ask('createKey', { body }))
      }}
    >
      <Field label="Name" hint="What the key is for." error={doing.errorAt('/name')}>
        {(tied) => <input {...tied} name="name" required maxLength={100} />}
      </Field>
      <Choices
        legend="Scopes"
        name="scopes"
        values={SCOPE_CHOICES}
        chosen={['read', 'detect']}
        error={doing.errorAt('/scopes') ?? doing.errorAt('/access')}
      />
      <AppsField error={doing.errorAt('/apps')} />
      <PlanField error={doing.errorAt('/plan')} />
      <Field
        label="Expires"
        hint="In your local time. Leave empty for a key that never expires."
        error={doing.errorAt('/expires_at')}
      >
        {(tied) => <input {...tied} name="expires_at" type="datetime-local" />}
      </Field>
    </Form>
  )
}
