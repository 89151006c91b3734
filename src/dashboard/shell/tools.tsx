import { ErrorBoundary, lazy } from 'preact-iso'
import { useCallback, useState } from 'preact/hooks'
import type { Destination } from '../go-to/choices.ts'
import { IS_MAC, type ShellDialog, useKeys } from './keys.ts'

/** The button “Go to”, and the dialogs that every page has. Each is a separate file. */
export function Tools({
  pages,
  isReader,
}: {
  readonly pages: readonly Destination[]
  readonly isReader: boolean
}) {
  const [tool, setTool] = useState<ShellDialog | null>(null)
  const close = useCallback(() => setTool(null), [])
  useKeys(setTool)
  return (
    <>
      <button
        type="button"
        class="go"
        aria-haspopup="dialog"
        aria-keyshortcuts={IS_MAC ? 'Meta+K' : 'Control+K'}
        onClick={() => setTool('go-to')}
      >
        Go to… <kbd>{IS_MAC ? '⌘ K' : 'Ctrl K'}</kbd>
      </button>
      <ErrorBoundary>
        {tool === 'go-to' && (
          <GoTo pages={pages} isReader={isReader} close={close} showKeys={() => setTool('keys')} />
        )}
        {tool === 'keys' && <Keys close={close} />}
      </ErrorBoundary>
    </>
  )
}

const GoTo = lazy(() => import('../go-to/go-to.tsx').then(({ GoTo }) => GoTo))
const Keys = lazy(() => import('../go-to/keys.tsx').then(({ Keys }) => Keys))
