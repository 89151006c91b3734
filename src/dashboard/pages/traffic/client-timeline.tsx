import type { Request } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Badge } from '../../parts/badge.tsx'
import { Table } from '../../parts/table.tsx'
import { Answered, Empty } from '../../parts/states.tsx'
import { FullTime } from '../../parts/time.tsx'
import { actionText } from './request-words.ts'

/** What the address of a request did before it, newest first. */
export function ClientTimeline({ request: { id, address, seen_at } }: { readonly request: Request }) {
  // `until` is exclusive, and requests of the same millisecond belong to it.
  const until = new Date(Date.parse(seen_at) + 1).toISOString()
  const used = useAsked('listRequests', { query: { address, until, limit: SHOWN + 1 } })
  return (
    <section class="card" aria-labelledby="timeline">
      <h2 id="timeline">What {address} did before</h2>
      <Answered used={used}>
        {({ requests }) => {
          const others = requests.filter((each) => each.id !== id).slice(0, SHOWN)
          if (others.length === 0) return <Empty title="No earlier requests are recorded" />
          return (
            <Table
              label={`Earlier requests from ${address}`}
              rows={others}
              keyOf={(each) => each.id}
              columns={[
                {
                  title: 'Request',
                  cell: (each) => (
                    <a class="mono break" href={`/dashboard/traffic/${encodeURIComponent(each.id)}`}>
                      {each.method} {each.host}
                      {each.path}
                    </a>
                  ),
                },
                { title: 'Verdict', isExtra: true, cell: ({ verdict }) => <Badge of={verdict} /> },
                {
                  title: 'Action',
                  cell: (each) => <Badge of={each.action} text={actionText(each)} />,
                },
                { title: 'When', isExtra: true, cell: (each) => <FullTime at={each.seen_at} /> },
              ]}
            />
          )
        }}
      </Answered>
    </section>
  )
}

const SHOWN = 10
