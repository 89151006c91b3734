import type { AgentRobots } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { withQuery } from '../../parts/chosen/app.ts'
import { useWindow, WINDOW_WORDS } from '../../parts/chosen/window.ts'
import { counted, percent, whole } from '../../parts/format.ts'
import { Answered, Empty } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { FullTime } from '../../parts/time.tsx'

/** Whether the agent keeps to robots.txt, in the time range of its requests. */
export function AgentRobotsSection({ id }: { readonly id: string }) {
  const window = useWindow()
  const used = useAsked('getAgentRobots', { path: { agent_id: id }, query: { window } })
  return (
    <section class="card" aria-labelledby="robots">
      <h2 id="robots">robots.txt</h2>
      <Answered used={used}>{(robots) => <Compared robots={robots} />}</Answered>
    </section>
  )
}

function Compared({ robots }: { readonly robots: AgentRobots }) {
  const { requests, estimated, compared, disallowed, share, robots_requests, paths } = robots
  if (requests === 0)
    return <Empty title={`No recorded requests in the last ${WINDOW_WORDS[robots.window]}`} />
  const isSampled = estimated !== requests
  return (
    <>
      <p>
        {robots_requests === 0
          ? 'It did not fetch /robots.txt'
          : `It fetched /robots.txt ${robots_requests === 1 ? 'once' : `${whole(robots_requests)} times`}`}
        {` in ${counted(requests, 'recorded request')} of the last ${WINDOW_WORDS[robots.window]}.`}
      </p>
      {share === null ? (
        compared === 0 && requests > robots_requests ? (
          <Empty title="Its robots.txt is unknown">
            <p>
              Publish the policy with <code>publish.robots</code>, or name the file of the app with{' '}
              <code>threats.robots_file</code> or <code>threats.robots_upstream</code>:{' '}
              <a href="/dashboard/help/terms">Tell crawlers what the policy does</a>.
            </p>
          </Empty>
        ) : null
      ) : disallowed === 0 ? (
        <p>robots.txt allows all of its other requests that were compared ({whole(compared)}).</p>
      ) : (
        <p>
          <strong>
            robots.txt disallows {whole(disallowed)} of {counted(compared, 'request')} ({percent(share)}).
          </strong>{' '}
          It is the file of today, and clients that only claim to be this agent are counted, too.
        </p>
      )}
      {paths.length > 0 && <Paths robots={robots} />}
      {isSampled && (
        <p class="hint">A share of the requests is recorded, so the percentage is an estimate.</p>
      )}
      {robots.stopped_at !== null && (
        <p class="hint">
          There are more requests than can be read at once: these go back to{' '}
          <FullTime at={robots.stopped_at} />.
        </p>
      )}
    </>
  )
}

function Paths({ robots: { paths, agent_id } }: { readonly robots: AgentRobots }) {
  return (
    <Table
      label="Disallowed paths with the most requests"
      rows={paths}
      keyOf={({ app, host, path, line }) => JSON.stringify([app, host, path, line])}
      columns={[
        {
          title: 'Path',
          cell: ({ app, host, path }) => (
            <a
              class="mono break"
              href={withQuery('/dashboard/traffic', { app, agent_id, host: host ?? undefined, path })}
            >
              {host}
              {path}
            </a>
          ),
        },
        { title: 'Line of robots.txt', cell: ({ line }) => <code>{line}</code> },
        { title: 'Requests', isNumber: true, cell: ({ requests }) => whole(requests) },
      ]}
    />
  )
}
