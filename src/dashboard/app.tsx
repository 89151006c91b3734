import { useEffect, useState } from 'preact/hooks'
import { ErrorBoundary, LocationProvider, Route, Router } from 'preact-iso'
import { currentSession, signOutReason, watchSession } from './api/session.ts'
import { PAGES } from './pages.ts'
import { Page } from './parts/page.tsx'
import { Crash } from './shell/crash.tsx'
import { Shell } from './shell/shell.tsx'
import { SignIn } from './shell/sign-in.tsx'

/** `failure`: why signing in failed. */
export function App({ failure }: { readonly failure: string | null }) {
  const [session, setSession] = useState(currentSession)
  const [error, setError] = useState<Error | null>(null)
  const [isLoading, setLoading] = useState(false)
  useEffect(() => watchSession(() => setSession(currentSession())), [])
  useEffect(() => watchErrors(setError), [])
  if (session === null) return <SignIn failure={signOutReason() ?? failure} />
  return (
    <LocationProvider scope="/dashboard">
      <Shell>
        {error !== null && <Crash error={error} />}
        {isLoading && error === null && (
          <p class="loading" role="status">
            Loading…
          </p>
        )}
        <ErrorBoundary onError={setError}>
          <Router
            onLoadStart={() => setLoading(true)}
            onLoadEnd={() => setLoading(false)}
            onRouteChange={() => setError(null)}
          >
            {PAGES.flatMap(({ routes }) =>
              routes.map(({ path, component }) => <Route key={path} path={path} component={component} />),
            )}
            <Route default component={Nowhere} />
          </Router>
        </ErrorBoundary>
      </Shell>
    </LocationProvider>
  )
}

function Nowhere() {
  return (
    <Page title="Page not found">
      <p>
        This address has no page. Go to the <a href="/dashboard/">overview</a>.
      </p>
    </Page>
  )
}

/** Reports uncaught errors from any source. */
function watchErrors(found: (error: Error) => void): () => void {
  // An event without an error is not from a program: browsers send one for resize loops.
  const onError = ({ error }: ErrorEvent) => error && found(asError(error))
  const onRejection = ({ reason }: PromiseRejectionEvent) => found(asError(reason))
  addEventListener('error', onError)
  addEventListener('unhandledrejection', onRejection)
  return () => {
    removeEventListener('error', onError)
    removeEventListener('unhandledrejection', onRejection)
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}
