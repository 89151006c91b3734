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
import { AppsField, appsIn, appsText } from './apps-field.tsx'
import { KeptList } from './kept-list.tsx'
import { PlanField } from './plan-field.tsx'
import { TakeAway } from './take-away.tsx'

export function Clients() {
  const [made, setMade] = useState<NewClient | null>(null)
  return (
    <KeptList<Client>
      title="OAuth clients"
      about="Programs that get tokens at /oauth/token, for themselves or on behalf of a user."
      news={
        made !== null &&
        (made.client_secret === undefined ? (
          <p class="note good" role="status">
            Client <code>{made.client_id}</code> created.
          </p>
        ) : (
          <Secret label={`Client secret of ${made.client_id}.`} value={made.client_secret} />
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
        {
          title: 'Client ID',
          width: '11rem',
          isExtra: true,
          cell: ({ client_id }) => <code>{client_id}</code>,
        },
        {
          title: 'Grant types',
          width: 'minmax(8rem, 2fr)',
          isExtra: true,
          cell: ({ grant_types }) => grant_types.join(', '),
        },
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
        {
          title: 'Created',
          width: '9rem',
          isExtra: true,
          cell: ({ created_at }) => <Time at={created_at} />,
        },
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
              <p>Its tokens stop working, and all consents to it are withdrawn. This cannot be undone.</p>
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
        <Empty title="No clients yet">
          <p>For a program that acts only for itself, an API key is enough.</p>
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
      submit="Create"
      doing={doing}
      cancel={cancel}
      done={async (data) => made(await ask('createClient', { body: requestIn(data) }))}
    >
      <Field
        label="Name"
        hint="People see this name when they are asked for consent."
        error={doing.errorAt('/name')}
      >
        {(tied) => <input {...tied} name="name" required maxLength={100} />}
      </Field>
      <Choices
        legend="Grant types"
        name="grant_types"
        values={GRANT_TYPES}
        chosen={['client_credentials']}
        error={doing.errorAt('/grant_types')}
      />
      <Field
        label="Redirect URIs"
        hint="For authorization_code. One URL per line."
        error={doing.errorAt('/redirect_uris')}
      >
        {(tied) => <textarea {...tied} name="redirect_uris" rows={2} spellcheck={false} />}
      </Field>
      <Choices
        legend="Scopes"
        name="scopes"
        values={SCOPE_CHOICES}
        chosen={['read', 'detect']}
        error={doing.errorAt('/scopes')}
      />
      <Field label="Authentication" error={doing.errorAt('/token_endpoint_auth_method')}>
        {(tied) => (
          <select {...tied} name="method">
            <option value="">default: a secret, or a key if you give one below</option>
            <option value="client_secret_post">secret in the request body</option>
            <option value="private_key_jwt">signature with its key</option>
            <option value="none">none: an app on the user’s device</option>
          </select>
        )}
      </Field>
      <Field label="Public keys" hint="A JWK Set, for private_key_jwt." error={doing.errorAt('/jwks')}>
        {(tied) => <textarea {...tied} name="jwks" rows={3} spellcheck={false} />}
      </Field>
      <AppsField error={doing.errorAt('/apps')} />
      <PlanField error={doing.errorAt('/plan')} />
    </Form>
  )
}

function requestIn(data: FormData): ClientRequest {
  const method = textOf(data, 'method') as ClientAuthMethod | undefined
  const jwks = jsonIn(data, 'jwks')
  const plan = textOf(data, 'plan') as Plan | undefined
  const uris = (textOf(data, 'redirect_uris') ?? '').split(/\s+/).filter((uri) => uri !== '')
  const apps = appsIn(data)
  return {
    name: textOf(data, 'name') ?? '',
    grant_types: data.getAll('grant_types') as GrantType[],
    scopes: data.getAll('scopes') as Scope[],
    ...(apps !== undefined && { apps }),
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
    const errors = [{ pointer: `/${name}`, detail: `invalid JSON: ${(error as Error).message}` }]
    throw new ApiProblem({
      status: 400,
      code: 'invalid_request',
      detail: 'the form contains invalid JSON',
      errors,
    })
  }
}

const GRANT_TYPES = [
  { value: 'client_credentials', about: 'for itself' },
  { value: 'authorization_code', about: 'on behalf of a user' },
  { value: 'refresh_token', about: 'until access is revoked' },
] as const
