import { WINDOW_WORDS } from '../../parts/chosen/window.ts'
import { Empty } from '../../parts/states.tsx'
import type { OverviewScope } from './overview.tsx'

/** What to do when there is nothing to show. */
export function Begin({ shown: { window, chosen } }: { readonly shown: OverviewScope }) {
  const { app, team } = chosen
  const whose = app !== undefined ? ` to the app ${app}` : team !== undefined ? ` to apps of ${team}` : ''
  return (
    <Empty title={`No requests${whose} in the last ${WINDOW_WORDS[window]}`}>
      <p>Send one through the gateway. It appears here within seconds:</p>
      <pre>{EXAMPLE}</pre>
      <p>
        The first is classified as a program, the second claims to be a crawler and proves nothing. To protect
        an app, set its address at <code>proxy.upstream</code> and lead its visitors to the gateway:{' '}
        <a href="/dashboard/help/proxy">The proxy</a>.
      </p>
      {window !== '30d' && <p>Earlier requests are in a longer time range.</p>}
    </Empty>
  )
}

const EXAMPLE = `curl --insecure https://HOST:8443/
curl --insecure --user-agent GPTBot/1.2 https://HOST:8443/`
