import { useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import type { Scope, User, UserChanges } from '../../api/operations.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Badge } from '../../parts/badge.tsx'
import { Choices, SCOPE_CHOICES } from '../../parts/choices.tsx'
import { Field } from '../../parts/field.tsx'
import { Form, textOf } from '../../parts/form.tsx'
import { PART_LENGTH } from '../../parts/long-table.tsx'
import { Empty, ProblemNote } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { AppsField, appsIn, appsText } from './apps-field.tsx'
import { KeptList } from './kept-list.tsx'
import { TakeAway } from './take-away.tsx'

export function Users() {
  const [changed, setChanged] = useState<User | null>(null)
  return (
    <KeptList<User>
      title="Users"
      about="People who sign in and can give clients part of their own access."
      keyOf={({ id }) => id}
      load={async (page, signal) => {
        const { users, total } = await ask('listUsers', { query: { page, limit: PART_LENGTH } }, { signal })
        return { rows: users, total }
      }}
      news={changed !== null && <ChangeUser key={changed.id} user={changed} close={() => setChanged(null)} />}
      columns={(again) => [
        { title: 'Email', width: 'minmax(8rem, 3fr)', cell: ({ email }) => email },
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
        {
          title: 'Sign-in methods',
          width: 'minmax(6rem, 2fr)',
          isExtra: true,
          cell: (user) => (user.disabled ? <Badge of="bad" text="disabled" /> : waysOf(user)),
        },
        { title: 'Since', width: '8rem', isExtra: true, cell: ({ created_at }) => <Time at={created_at} /> },
        {
          title: 'Action',
          // Two buttons, also where the window is narrow.
          width: 'minmax(11rem, 11rem)',
          cell: (user) => (
            <span class="actions">
              <button type="button" aria-label={`Change ${user.email}`} onClick={() => setChanged(user)}>
                Change
              </button>
              <TakeAway
                verb="Delete"
                name={user.email}
                work={async () => {
                  await ask('deleteUser', { path: { id: user.id } })
                  again()
                }}
              >
                <p>
                  They are signed out everywhere, and their consents are withdrawn. This cannot be undone.
                </p>
              </TakeAway>
            </span>
          ),
        },
      ]}
      make={{ button: 'New user', form: (done, cancel) => <NewUser done={done} cancel={cancel} /> }}
      empty={
        <Empty title="No users yet">
          <p>A user signs in with an email address and a password, here and for OAuth clients.</p>
        </Empty>
      }
    />
  )
}

function waysOf({ has_password, has_one_time_codes, openid }: User): string {
  const ways = [
    ...(has_password ? [has_one_time_codes ? 'password and code' : 'password'] : []),
    ...(openid === null ? [] : ['OpenID']),
  ]
  return ways.length === 0 ? 'passkey or none' : ways.join(', ')
}

function NewUser({ done, cancel }: { readonly done: () => void; readonly cancel: () => void }) {
  const doing = useDoing()
  return (
    <Form
      label="New user"
      submit="Create"
      doing={doing}
      cancel={cancel}
      done={async (data) => {
        const password = textOf(data, 'password')
        const scopes = data.getAll('scopes') as Scope[]
        const apps = appsIn(data)
        const body = {
          email: textOf(data, 'email') ?? '',
          scopes,
          ...(apps !== undefined && { apps }),
          ...(password !== undefined && { password }),
        }
        await ask('createUser', { body })
        done()
      }}
    >
      <Field label="Email" error={doing.errorAt('/email')}>
        {(tied) => <input {...tied} name="email" type="email" required autocomplete="off" />}
      </Field>
      <Field
        label="Password"
        hint="12 characters or more. They can change it. Leave empty to set it later."
        error={doing.errorAt('/password')}
      >
        {(tied) => <input {...tied} name="password" type="password" autocomplete="new-password" />}
      </Field>
      <Choices
        legend="Scopes"
        name="scopes"
        values={SCOPE_CHOICES}
        chosen={['read', 'detect']}
        error={doing.errorAt('/scopes')}
      />
      <AppsField error={doing.errorAt('/apps')} />
    </Form>
  )
}

function ChangeUser({ user: given, close }: { readonly user: User; readonly close: () => void }) {
  const doing = useDoing()
  const [user, setUser] = useState(given)
  const [said, setSaid] = useState<string | null>(null)
  const change = (body: UserChanges, text: string) =>
    doing.run(async () => {
      setUser(await ask('updateUser', { path: { id: user.id }, body }))
      setSaid(text)
    })
  return (
    <section class="card" aria-labelledby="user">
      <h3 id="user">{user.email}</h3>
      {doing.problem !== null && <ProblemNote problem={doing.problem} />}
      <p role="status">{said}</p>
      <form
        aria-label="Change user"
        onSubmit={(event) => {
          event.preventDefault()
          const data = new FormData(event.currentTarget)
          const password = textOf(data, 'password')
          const scopes = data.getAll('scopes') as Scope[]
          const apps = appsIn(data)
          const access = { scopes, ...(apps !== undefined && { apps }) }
          void change({ ...access, ...(password !== undefined && { password }) }, 'Saved.')
        }}
      >
        <Choices
          legend="Scopes"
          name="scopes"
          values={SCOPE_CHOICES}
          chosen={user.scopes}
          error={doing.errorAt('/scopes')}
        />
        <AppsField apps={user.apps} error={doing.errorAt('/apps')} />
        <Field
          label="New password"
          hint="A new password signs them out everywhere. Leave empty to keep the current one."
          error={doing.errorAt('/password')}
        >
          {(tied) => <input {...tied} name="password" type="password" autocomplete="new-password" />}
        </Field>
        <p class="actions">
          <button type="submit" class="main">
            Save
          </button>
          <button
            type="button"
            onClick={() =>
              void change(
                { disabled: !user.disabled },
                user.disabled ? 'Enabled: they can sign in.' : 'Disabled: they cannot sign in.',
              )
            }
          >
            {user.disabled ? 'Enable' : 'Disable'}
          </button>
          <button
            type="button"
            onClick={() => void change({ one_time_codes: false }, 'One-time codes removed.')}
          >
            Remove one-time codes
          </button>
          <button type="button" onClick={() => void change({ passkeys: false }, 'Passkeys removed.')}>
            Remove passkeys
          </button>
          <button type="button" onClick={close}>
            Close
          </button>
        </p>
      </form>
      <OpenidLink user={user} changed={setUser} />
    </section>
  )
}

/** The user's account at the OpenID provider. */
function OpenidLink({ user, changed }: { readonly user: User; readonly changed: (user: User) => void }) {
  const doing = useDoing()
  const path = { id: user.id }
  if (user.openid !== null)
    return (
      <p>
        Linked to {user.openid.issuer} as <code>{user.openid.subject}</code>.{' '}
        <button
          type="button"
          onClick={() =>
            void doing.run(async () => {
              await ask('forgetOpenid', { path })
              changed({ ...user, openid: null })
            })
          }
        >
          Unlink
        </button>
      </p>
    )
  return (
    <details>
      <summary>Link to the OpenID provider</summary>
      <Form
        label="Link to the OpenID provider"
        submit="Link"
        doing={doing}
        done={async (data) =>
          changed(await ask('setOpenid', { path, body: { subject: textOf(data, 'subject') ?? '' } }))
        }
      >
        <Field
          label="Subject"
          hint="Their ID at the provider (sub). The audit log shows it in failSignIn entries."
          error={doing.errorAt('/subject')}
        >
          {(tied) => <input {...tied} name="subject" required />}
        </Field>
      </Form>
    </details>
  )
}
