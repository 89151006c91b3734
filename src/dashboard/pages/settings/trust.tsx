import { ask } from '../../api/ask.ts'
import type { Plan, Scope, Trust, TrustRequest } from '../../api/operations.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Choices, SCOPE_CHOICES } from '../../parts/choices.tsx'
import { Field } from '../../parts/field.tsx'
import { Form, textOf } from '../../parts/form.tsx'
import { PART_LENGTH } from '../../parts/long-table.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { jsonIn } from './clients.tsx'
import { AppsField, appsIn, appsText } from './apps-field.tsx'
import { KeptList } from './kept-list.tsx'
import { PlanField } from './plan-field.tsx'
import { TakeAway } from './take-away.tsx'

export function TrustEntries() {
  return (
    <KeptList<Trust>
      title="Trust"
      about="Access for agents that prove their identity, and for the keys of GNAP clients."
      keyOf={({ id }) => id}
      load={async (page, signal) => {
        const { trust, total } = await ask('listTrust', { query: { page, limit: PART_LENGTH } }, { signal })
        return { rows: trust, total }
      }}
      columns={(again) => [
        {
          title: 'Agent',
          width: 'minmax(8rem, 3fr)',
          cell: (entry) => <span title={nameOf(entry)}>{nameOf(entry)}</span>,
        },
        { title: 'Identified by', width: '8rem', isExtra: true, cell: howOf },
        {
          title: 'Scopes',
          width: 'minmax(6rem, 1fr)',
          isExtra: true,
          cell: ({ scopes }) => scopes.join(', '),
        },
        {
          title: 'Apps',
          width: 'minmax(4rem, 1fr)',
          isExtra: true,
          cell: ({ apps }) => appsText(apps),
        },
        { title: 'Since', width: '9rem', isExtra: true, cell: ({ created_at }) => <Time at={created_at} /> },
        {
          title: 'Action',
          width: '6rem',
          cell: (entry) => (
            <TakeAway
              verb="Delete"
              name={nameOf(entry)}
              work={async () => {
                await ask('deleteTrust', { path: { id: entry.id } })
                again()
              }}
            >
              <p>It loses all access, and its tokens are refused.</p>
            </TakeAway>
          ),
        },
      ]}
      make={{ button: 'Add trusted agent', form: (done, cancel) => <NewTrust done={done} cancel={cancel} /> }}
      empty={
        <Empty title="No trusted agents yet">
          <p>Add an agent by the address of its identity document, or a GNAP client by its public key.</p>
        </Empty>
      }
    />
  )
}

function nameOf({ name, agent_id, thumbprint, id }: Trust): string {
  return name ?? agent_id ?? thumbprint ?? id
}

function howOf({ agent_id, document }: Trust): string {
  if (document !== null) return 'stored document'
  return agent_id === null ? 'key' : 'address'
}

function NewTrust({ done, cancel }: { readonly done: () => void; readonly cancel: () => void }) {
  const doing = useDoing()
  return (
    <Form
      label="Add trusted agent"
      submit="Add"
      doing={doing}
      cancel={cancel}
      done={async (data) => {
        await ask('createTrust', { body: requestIn(data) })
        done()
      }}
    >
      <Field
        label="Agent address"
        hint="The URL of its identity document or of its key directory."
        error={doing.errorAt('/agent_id')}
      >
        {(tied) => (
          <input {...tied} name="agent_id" type="url" placeholder="https://agent.example/identity.json" />
        )}
      </Field>
      <Field
        label="Identity document"
        hint="JSON. Only if it should not be fetched."
        error={doing.errorAt('/document')}
      >
        {(tied) => <textarea {...tied} name="document" rows={3} spellcheck={false} />}
      </Field>
      <Field
        label="Public key of a GNAP client"
        hint="A JWK, instead of an agent address."
        error={doing.errorAt('/jwk')}
      >
        {(tied) => <textarea {...tied} name="jwk" rows={3} spellcheck={false} />}
      </Field>
      <Field label="Name" error={doing.errorAt('/name')}>
        {(tied) => <input {...tied} name="name" maxLength={100} />}
      </Field>
      <Choices
        legend="Scopes"
        name="scopes"
        values={SCOPE_CHOICES}
        chosen={['read', 'detect']}
        error={doing.errorAt('/scopes')}
      />
      <AppsField error={doing.errorAt('/apps')} />
      <PlanField error={doing.errorAt('/plan')} />
    </Form>
  )
}

function requestIn(data: FormData): TrustRequest {
  const [agent, document, jwk] = [textOf(data, 'agent_id'), jsonIn(data, 'document'), jsonIn(data, 'jwk')]
  const [name, plan] = [textOf(data, 'name'), textOf(data, 'plan') as Plan | undefined]
  const apps = appsIn(data)
  return {
    scopes: data.getAll('scopes') as Scope[],
    ...(apps !== undefined && { apps }),
    ...(agent !== undefined && { agent_id: agent }),
    ...(document !== undefined && { document }),
    ...(jwk !== undefined && { jwk }),
    ...(name !== undefined && { name }),
    ...(plan !== undefined && { plan }),
  }
}
