import { useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import type {
  Client,
  ClientAuthMethod,
  ClientRequest,
  GrantType,
  NewClient,
  Plan,
  Scope,
} from '../../api/operations.ts'
import { ApiProblem } from '../../api/problem.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Choices, SCOPE_CHOICES } from '../../parts/choices.tsx'
import { Field } from '../../parts/field.tsx'
import { Form, textOf } from '../../parts/form.tsx'
import { PART_LENGTH } from '../../parts/long-table.tsx'
import { Secret } from '../../parts/secret.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { KeptList } from './kept-list.tsx'
import { PlanField } from './plan-field.tsx'
import { TakeAway } from './take-away.tsx'

export function Clients() {
  const [made, setMade] = useState<NewClient | null>(null)
  return (
    <KeptList<Client>
      title="OAuth clients"
      about="Programs that get tokens at /oauth/token, for themselves or in the name of who signs in."
      news={
        made !== null &&
        (made.client_secret === undefined ? (
          <p class="note good" role="status">
            The client is <code>{made.client_id}</code>.
          </p>
        ) : (
          <Secret label={`The secret of ${made.client_id}.`} value={made.client_secret} />
        ))
      }
      keyOf={({ client_id }) => client_id}
      load={async (page, signal) => {
        const { clients, total } = await ask(
          'listClients',
          { query: { page, limit: PART_LENGTH } },
          { signal },
        )
        return { rows: clients, total }
      }}
      columns={(again) => [
        { title: 'Name', width: 'minmax(8rem, 2fr)', cell: ({ name }) => name },
        { title: 'Id', width: '11rem', isExtra: true, cell: ({ client_id }) => <code>{client_id}</code> },
        {
          title: 'For',
          width: 'minmax(8rem, 2fr)',
          isExtra: true,
          cell: ({ grant_types }) => grant_types.join(', '),
        },
        { title: 'May', width: 'minmax(6rem, 1fr)', isExtra: true, cell: ({ scopes }) => scopes.join(', ') },
        { title: 'Made', width: '9rem', isExtra: true, cell: ({ created_at }) => <Time at={created_at} /> },
        {
          title: 'Action',
          width: '6rem',
          cell: ({ client_id, name }) => (
            <TakeAway
              verb="Delete"
              name={name}
              work={async () => {
                await ask('deleteClient', { path: { client_id } })
                again()
              }}
            >
              <p>
                Its tokens open nothing any more, and nobody’s consent to it counts. There is no way back.
              </p>
            </TakeAway>
          ),
        },
      ]}
      make={{
        button: 'New client',
        form: (done, cancel) => (
          <NewClientForm
            cancel={cancel}
            made={(client) => {
              setMade(client)
              done()
            }}
          />
        ),
      }}
      empty={
        <Empty title="There are no clients.">
          <p>A program that only asks who somebody is gets along with an API key.</p>
        </Empty>
      }
    />
  )
}

function NewClientForm({
  made,
  cancel,
}: {
  readonly made: (client: NewClient) => void
  readonly cancel: () => void
}) {
  const doing = useDoing()
  return (
    <Form
      label="New client"
      submit="Make it"
      doing={doing}
      cancel={cancel}
      done={async (data) => made(await ask('createClient', { body: requestIn(data) }))}
    >
      <Field label="Name" hint="People are asked for their consent under it." error={doing.errorAt('/name')}>
        {(tied) => <input {...tied} name="name" required maxLength={100} />}
      </Field>
      <Choices
        legend="It gets tokens by"
        name="grant_types"
        values={GRANT_TYPES}
        chosen={['client_credentials']}
        error={doing.errorAt('/grant_types')}
      />
      <Field
        label="Where people are led back to"
        hint="Of authorization_code: one URL a line."
        error={doing.errorAt('/redirect_uris')}
      >
        {(tied) => <textarea {...tied} name="redirect_uris" rows={2} spellcheck={false} />}
      </Field>
      <Choices
        legend="It may"
        name="scopes"
        values={SCOPE_CHOICES}
        chosen={['read', 'detect']}
        error={doing.errorAt('/scopes')}
      />
      <Field label="It shows" error={doing.errorAt('/token_endpoint_auth_method')}>
        {(tied) => (
          <select {...tied} name="method">
            <option value="">the usual: its secret, or a key where there is one below</option>
            <option value="client_secret_post">its secret in the body</option>
            <option value="private_key_jwt">a signature of its key</option>
            <option value="none">nothing: an app on somebody’s machine</option>
          </select>
        )}
      </Field>
      <Field label="Its public keys" hint="A JWK Set, for private_key_jwt." error={doing.errorAt('/jwks')}>
        {(tied) => <textarea {...tied} name="jwks" rows={3} spellcheck={false} />}
      </Field>
      <PlanField error={doing.errorAt('/plan')} />
    </Form>
  )
}

function requestIn(data: FormData): ClientRequest {
  const method = textOf(data, 'method') as ClientAuthMethod | undefined
  const jwks = jsonIn(data, 'jwks')
  const plan = textOf(data, 'plan') as Plan | undefined
  const uris = (textOf(data, 'redirect_uris') ?? '').split(/\s+/).filter((uri) => uri !== '')
  return {
    name: textOf(data, 'name') ?? '',
    grant_types: data.getAll('grant_types') as GrantType[],
    scopes: data.getAll('scopes') as Scope[],
    ...(uris.length > 0 && { redirect_uris: uris }),
    ...(method !== undefined && { token_endpoint_auth_method: method }),
    ...(jwks !== undefined && { jwks }),
    ...(plan !== undefined && { plan }),
  }
}

/** Throws an ApiProblem, as the API would. */
export function jsonIn(data: FormData, name: string): Readonly<Record<string, unknown>> | undefined {
  const text = textOf(data, name)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    const errors = [{ pointer: `/${name}`, detail: `is no JSON: ${(error as Error).message}` }]
    throw new ApiProblem({ status: 400, code: 'invalid_request', detail: 'that cannot be sent', errors })
  }
}

const GRANT_TYPES = [
  { value: 'client_credentials', about: 'for itself' },
  { value: 'authorization_code', about: 'for who signs in' },
  { value: 'refresh_token', about: 'for as long as nobody takes it back' },
] as const
