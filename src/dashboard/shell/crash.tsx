/** Reports a bug of the dashboard. A file that is missing after an update is not reported as a bug. */
export function Crash({ error }: { readonly error: Error }) {
  return (
    <div class="note bad" role="alert">
      <p>
        <strong>This page has met a bug of its own: {error.message}</strong>
      </p>
      <p>
        Nothing in the gateway has changed by it. Where the gateway has just been updated, the page has to be
        loaded again.
      </p>
      <p>
        <button type="button" onClick={() => location.reload()}>
          Load it again
        </button>
      </p>
    </div>
  )
}
