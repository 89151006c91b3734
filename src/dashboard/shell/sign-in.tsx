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
    setWrong(null)
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
        <p class="soft">See which AI agents send requests and what Gatehouse does with them.</p>
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
            To sign in with an account, go to <a href={accounts.at}>{accounts.at}</a>.
          </p>
        )}
        <form onSubmit={(event) => void submit(event)}>
          <Field
            label="API key"
            error={wrong}
            hint={
              <>
                On the machine where Gatehouse runs, create one with{' '}
                <code>gatehouse keys create --name admin --access admin</code> and the same{' '}
                <code>--config</code> or <code>--data</code> as Gatehouse. On a terminal, Gatehouse shows the
                full command when it starts. The key is stored until you close this tab.
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
  if (!/^[\x21-\x7e]+$/.test(key)) return 'Invalid API key: it contains characters that are not allowed.'
  try {
    const headers = { Authorization: `Bearer ${key}` }
    const response = await fetch('/v1/me', { headers, credentials: 'omit' })
    if (response.ok) return null
    if (response.status === 401)
      return 'Invalid API key: mistyped, revoked, expired, or from another gateway.'
    return problemOf(response.status, await response.json().catch(() => null)).message
  } catch {
    return 'Cannot reach the management plane.'
  }
}

function useAccounts(): Awaited<ReturnType<typeof accountsOffered>> {
  const [accounts, setAccounts] = useState<Awaited<ReturnType<typeof accountsOffered>>>(false)
  useEffect(() => {
    accountsOffered().then(setAccounts, () => setAccounts(false))
  }, [])
  return accounts
}
