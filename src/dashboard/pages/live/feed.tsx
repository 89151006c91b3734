import { useEffect, useState } from 'preact/hooks'
import type { StreamEvent } from '../../../wire/event-stream.ts'
import { ask } from '../../api/ask.ts'
import { listen } from '../../api/listen.ts'
import type { Request } from '../../api/operations.ts'
import { Badge } from '../../parts/badge.tsx'
import { type Chosen, explainedAt, withQuery } from '../../parts/chosen/app.ts'
import { clock, whole } from '../../parts/format.ts'
import { Empty } from '../../parts/states.tsx'
import { caughtUp, type Fed, fedWith, NOTHING_FED } from './fed.ts'

/** Single requests as they arrive. It can be paused for reading. */
export function Feed({ chosen }: { readonly chosen: Chosen }) {
  const [isPaused, setPaused] = useState(false)
  const fed = useFed(isPaused, chosen)
  return (
    <section class="card" aria-labelledby="feed">
      <div class="page-head">
        <h2 id="feed">Latest requests</h2>
        <div class="actions">
          <a class="button" href={withQuery('/dashboard/traffic', { ...chosen })}>
            All requests
          </a>
          <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
            Pause
          </button>
        </div>
      </div>
      {fed.requests.length === 0 ? (
        <Empty title="No requests yet">
          <p>
            Send a request through the gateway: <code>curl --insecure https://HOST:8443/</code>. It appears
            here within a second.
          </p>
        </Empty>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by the keys
        <ol class="feed" tabIndex={0} aria-label="Requests, newest first">
          {fed.requests.map((request) => (
            <Line key={request.id} request={request} />
          ))}
        </ol>
      )}
      {fed.skipped > 0 && <p class="soft">{whole(fed.skipped)} more requests arrived than are shown.</p>}
    </section>
  )
}

function Line({ request }: { readonly request: Request }) {
  const { id, seen_at, verdict, agent_id, agent_name, software_id, software_name } = request
  const { verified, identity, conflicts } = request
  const { method, host, path, action, rule, address } = request
  const who = agent_id ?? software_id
  const name = (agent_id === null ? software_name : agent_name) ?? who
  return (
    <li>
      <time dateTime={seen_at} class="mono">
        {clock(seen_at)}
      </time>
      <Badge of={verdict} />
      <span>
        {who === null ? (
          (identity ?? address)
        ) : (
          <a href={`/dashboard/agents/${encodeURIComponent(who)}`}>{name}</a>
        )}
      </span>
      {verified !== null && <Badge of="verified" text={`verified: ${verified}`} />}
      {agent_id !== null && verified === null && <small class="soft">unverified</small>}
      {conflicts.map((conflict) => (
        <Badge key={conflict} of="warn" text={`but ${conflict.replaceAll('-', ' ')}`} />
      ))}
      <a
        class="what mono"
        href={`/dashboard/traffic/${encodeURIComponent(id)}`}
        title={`${method} ${host ?? ''}${path}`}
      >
        {method} {host}
        {path}
      </a>
      <a href={explainedAt(request)} title="Explain this decision">
        <Badge of={action} text={rule === 'otherwise' ? action : `${action}: ${rule}`} />
      </a>
    </li>
  )
}

/** The latest requests, and new ones as they arrive. */
function useFed(isPaused: boolean, chosen: Chosen): Fed {
  const [fed, setFed] = useState(NOTHING_FED)
  useEffect(() => {
    if (isPaused) return
    const stop = new AbortController()
    const { signal } = stop
    // After the stream is connected, so that no request is missed in between.
    const catchUp = () =>
      ask('listRequests', { query: { limit: 20, ...chosen } }, { signal }).then(
        ({ requests }) => setFed((before) => caughtUp(before, requests)),
        () => undefined,
      )
    const events = (fresh: readonly StreamEvent[]) => setFed((before) => fedWith(before, fresh))
    // The traffic stream above shows connection problems.
    void listen('listRequests', chosen, { events, state: (isOpen) => void (isOpen && catchUp()) }, signal)
    return () => stop.abort()
  }, [isPaused, JSON.stringify(chosen)])
  return fed
}
