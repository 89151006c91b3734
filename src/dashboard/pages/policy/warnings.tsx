import type { PolicyWarning } from '../../api/operations.ts'

/** Parts of a valid policy that may not do what its author intends. */
export function Warnings({ warnings }: { readonly warnings: readonly PolicyWarning[] }) {
  if (warnings.length === 0) return null
  return (
    <div class="note warn" role="status" aria-label="Warnings">
      <p>{warnings.length === 1 ? '1 warning:' : `${warnings.length} warnings:`}</p>
      <ul>
        {warnings.map(({ pointer, detail }) => (
          <li key={`${pointer} ${detail}`}>
            {detail}
            {pointer !== '' && (
              <>
                {' '}
                <code>{pointer}</code>
              </>
            )}
          </li>
        ))}
      </ul>
    </div>
  )
}
