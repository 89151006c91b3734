import { useMemo, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import type { Request } from '../../api/operations.ts'
import { Badge } from '../../parts/badge.tsx'
import { useChosen, withQuery } from '../../parts/chosen/app.ts'
import { useSince } from '../../parts/chosen/window.ts'
import { FilterFields, filterQuery, Fresh, useFilters } from '../../parts/filters.tsx'
import { type LongColumn, LongTable } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { RuleLink } from '../../parts/rule-link.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { useFresh } from '../../parts/use-fresh.ts'
import { ExportButtons } from './export-buttons.tsx'
import { Facets } from './facets.tsx'
import { FIELDS, TRAFFIC_NAMES } from './filters.ts'
import { requestAt, requestIdIn } from './request-id.ts'
import { RequestList, type RequestQuery } from './request-list.ts'
import { actionText, networkText, whoOf } from './request-words.ts'
import { SavedViews } from './views.tsx'

/** Recorded requests, searched by what is known of them. */
export function Traffic() {
  const { values, set } = useFilters(TRAFFIC_NAMES)
  const chosen = useChosen()
  const app = chosen.app ?? null
  const range = useSince()
  const { route, path, query: address } = useLocation()
  const isOldest = address['order'] === 'oldest'
  // A time of the filters wins over the time range.
  const isTimed = values.since !== '' || values.until !== ''
  const query: RequestQuery = {
    ...(!isTimed && range),
    ...filterQuery<RequestQuery>(FIELDS, values),
    ...chosen,
  }
  const [turn, setTurn] = useState(0)
  const listKey = JSON.stringify([query, turn, isOldest])
  const fresh = useFresh('listRequests', query, listKey, freshIn)
  // `listKey` stands for the query.
  const list = useMemo(() => new RequestList(isOldest ? { ...query, order: 'oldest' } : query), [listKey])
  const [hasNetworks, setNetworks] = useState(false)
  const load = async (page: number, signal: AbortSignal) => {
    const part = await list.load(page, signal)
    if (part.rows.some(({ network }) => network !== null)) setNetworks(true)
    return part
  }
  const sort = {
    direction: isOldest ? ('ascending' as const) : ('descending' as const),
    turn: () => route(withQuery(path, { ...address, order: isOldest ? undefined : 'oldest' }), true),
  }
  return (
    <Page
      title="Traffic"
      help="dashboard#traffic"
      about={`Recorded requests, ${isOldest ? 'oldest' : 'newest'} first: the client, the action and the reason of each.`}
      actions={<ExportButtons query={query} />}
    >
      <Find />
      <FilterFields fields={FIELDS} values={values} set={set}>
        <Fresh count={isOldest ? 0 : fresh} of="request" show={() => setTurn(turn + 1)} />
      </FilterFields>
      <div class="below-filters">
        <SavedViews />
        <button type="button" class="narrow-only" onClick={() => sort.turn()}>
          {isOldest ? 'Newest first' : 'Oldest first'}
        </button>
        <RuleLink app={app} filters={query as Readonly<Record<string, string>>}>
          Make a rule for these requests
        </RuleLink>
      </div>
      <div class="faceted">
        <Facets query={query} values={values} app={app} set={set} />
        <LongTable
          label="Requests"
          columns={[...(hasNetworks ? WITH_NETWORKS : COLUMNS), { ...WHEN, sort }]}
          listKey={listKey}
          keyOf={({ id }) => id}
          load={load}
          hrefOf={({ id }) => requestAt(id)}
          empty={
            <Empty title="No matching requests">
              <p>Requests are kept for a limited time: see the setting “sightings.retention”.</p>
              <p>
                <button type="button" onClick={() => route(withQuery('/dashboard/traffic', { ...chosen }))}>
                  Clear filters
                </button>
              </p>
            </Empty>
          }
        />
      </div>
    </Page>
  )
}

/** Goes to the request with the id that an error page shows. */
function Find() {
  const { route } = useLocation()
  const [wrong, setWrong] = useState(false)
  return (
    <form
      class="find"
      onSubmit={(event) => {
        event.preventDefault()
        const id = requestIdIn(String(new FormData(event.currentTarget).get('id')))
        setWrong(id === null)
        if (id !== null) route(requestAt(id))
      }}
    >
      <label for="find-id">Find by id</label>
      <input
        id="find-id"
        name="id"
        type="search"
        spellcheck={false}
        placeholder="the number on an error page"
        aria-describedby={wrong ? 'find-wrong' : undefined}
      />
      <button type="submit">Find</button>
      {wrong && (
        <span id="find-wrong" class="hint wrong" role="alert">
          Enter an id such as 01a209b9-5d03-7000-8002-190b89a95204.
        </span>
      )}
    </form>
  )
}

function freshIn({ event, data }: { readonly event: string; readonly data: string }): number {
  if (event === 'request') return 1
  return event === 'skipped' ? (JSON.parse(data) as { requests: number }).requests : 0
}

const COLUMNS: readonly LongColumn<Request>[] = [
  {
    title: 'Request',
    width: 'minmax(8rem, 4fr)',
    cell: ({ method, host, path }) => (
      <span class="mono" title={`${method} ${host ?? ''}${path}`}>
        {method} {host}
        {path}
      </span>
    ),
  },
  { title: 'Verdict', width: '6.5rem', cell: ({ verdict }) => <Badge of={verdict} /> },
  { title: 'Who', width: 'minmax(4.5rem, 2fr)', isExtra: true, cell: (request) => whoOf(request) },
  {
    title: 'From',
    width: 'minmax(6rem, 1fr)',
    isExtra: true,
    cell: ({ address }) => <span class="mono">{address}</span>,
  },
  {
    title: 'Action',
    width: 'minmax(4.5rem, 1.5fr)',
    isExtra: true,
    cell: (request) => <Badge of={request.action} text={actionText(request)} />,
  },
  { title: 'App', width: 'minmax(4rem, 1fr)', isExtra: true, cell: ({ app }) => app },
]
/** If a list says to which networks addresses belong. */
const WITH_NETWORKS: readonly LongColumn<Request>[] = COLUMNS.flatMap((column) => {
  if (column.title !== 'From') return [column]
  return [
    column,
    {
      title: 'Network',
      width: 'minmax(5rem, 1.5fr)',
      isExtra: true,
      cell: ({ network }) =>
        network !== null && (
          <span title={networkText(network)}>
            {network.country} {network.name ?? `AS${network.asn}`}
          </span>
        ),
    },
  ]
})
/** The only column that the list can be sorted by: requests are stored in this order. */
const WHEN: LongColumn<Request> = {
  title: 'When',
  width: 'minmax(7rem, 1fr)',
  isExtra: true,
  cell: ({ seen_at }) => <Time at={seen_at} />,
}
