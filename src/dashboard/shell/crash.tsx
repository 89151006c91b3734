/** Reports a bug of the dashboard. A file that is missing after an update is not reported as a bug. */
export function Crash({ error }: { readonly error: Error }) {
  return (
    <div class="note bad" role="alert">
      <p>
        <strong>This page crashed: {error.message}</strong>
      </p>
      <p>The gateway is not affected. If Gatehouse was just updated, reload the page.</p>
      <p>
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
      </p>
    </div>
  )
}
