import { useEffect, useState } from 'preact/hooks'
import { accountsOffered, beginSignIn } from '../api/oauth.ts'
import { problemOf } from '../api/problem.ts'
import { signIn } from '../api/session.ts'
import { Field } from '../parts/field.tsx'

/** `failure`: why a sign-in failed or a session ended. */
export function SignIn({ failure }: { readonly failure: string | null }) {
  const [wrong, setWrong] = useState<string | null>(null)
  const [isAsking, setAsking] = useState(false)
  const accounts = useAccounts()
  useEffect(() => {
    document.title = 'Sign in · Gatehouse'
  }, [])
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const key = String(new FormData(event.currentTarget as HTMLFormElement).get('key')).trim()
    setAsking(true)
    const why = await whyNot(key)
    setAsking(false)
    if (why === null) signIn(key)
    else setWrong(why)
  }
  return (
    <main class="sign-in">
      <div class="card">
        <h1>Gatehouse</h1>
        <p class="soft">Which agents are at the door, and what becomes of them.</p>
        {failure !== null && (
          <p class="note bad" role="alert">
            {failure}
          </p>
        )}
        {accounts === true && (
          <p>
            <button
              type="button"
              class="main"
              onClick={() => void beginSignIn(location.pathname + location.search)}
            >
              Sign in with an account
            </button>
          </p>
        )}
        {typeof accounts === 'object' && (
          <p>
            Accounts are good at <a href={accounts.at}>{accounts.at}</a>.
          </p>
        )}
        <form onSubmit={(event) => void submit(event)}>
          <Field
            label="API key"
            error={wrong}
            hint={
              <>
                Make one with <code>gatehouse keys create --name NAME --access admin</code>. The key is kept
                until this tab is closed.
              </>
            }
          >
            {(tied) => (
              <input {...tied} name="key" type="password" required autocomplete="off" spellcheck={false} />
            )}
          </Field>
          <button type="submit" class={accounts === true ? '' : 'main'} disabled={isAsking}>
            Sign in
          </button>
        </form>
      </div>
    </main>
  )
}

/** Tests the key directly, because it is not stored yet. */
async function whyNot(key: string): Promise<string | null> {
  if (!/^[\x21-\x7e]+$/.test(key)) return 'That is no key: it has characters that no key has.'
  try {
    const headers = { Authorization: `Bearer ${key}` }
    const response = await fetch('/v1/me', { headers, credentials: 'omit' })
    if (response.ok) return null
    if (response.status === 401)
      return 'This key opens nothing: it is mistyped, revoked, or of another gateway.'
    return problemOf(response.status, await response.json().catch(() => null)).message
  } catch {
    return 'The management plane does not answer.'
  }
}

function useAccounts(): Awaited<ReturnType<typeof accountsOffered>> {
  const [accounts, setAccounts] = useState<Awaited<ReturnType<typeof accountsOffered>>>(false)
  useEffect(() => {
    accountsOffered().then(setAccounts, () => setAccounts(false))
  }, [])
  return accounts
}
