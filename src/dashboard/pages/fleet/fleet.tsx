import { ask } from '../../api/ask.ts'
import type { Fleet as FleetAnswer, FleetProxy, Instance } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Badge } from '../../parts/badge.tsx'
import { Facts } from '../../parts/facts.tsx'
import { ChoiceFilter, Filters, useFilters } from '../../parts/filters.tsx'
import { counted, duration, whole } from '../../parts/format.ts'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { Answered, Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { Table } from '../../parts/table.tsx'
import { Past } from './past.tsx'

export function Fleet() {
  const used = useAsked('getFleet', {}, { everyMs: EVERY_MS })
  return (
    <Page title="Fleet" help="fleet" about="Proxies and workers, with their version, state and Snapshot.">
      <Answered used={used}>
        {(fleet) => (
          <>
            <Own fleet={fleet} />
            {fleet.instances.length > 0 && <Workers instances={fleet.instances} />}
            {fleet.proxies !== null && (
              <Proxies proxies={fleet.proxies} madeAt={fleet.snapshot?.made_at ?? ''} />
            )}
          </>
        )}
      </Answered>
    </Page>
  )
}

function Own({ fleet: { version, leads, snapshot, proxies } }: { readonly fleet: FleetAnswer }) {
  return (
    <section class="card" aria-labelledby="own">
      <h2 id="own">This management plane</h2>
      <Facts
        of={[
          ['Version', version],
          [
            'Role',
            leads
              ? 'leader: creates Snapshots and maintains the catalogue'
              : 'standby: another manager is the leader',
          ],
          [
            'Snapshot',
            snapshot === null ? (
              'none yet: proxies use their built-in signatures'
            ) : (
              <>
                {snapshot.number}, created <Time at={snapshot.made_at} />{' '}
                <code>{snapshot.hash.slice(0, 12)}</code>
              </>
            ),
          ],
          ['Proxies', proxies === null ? 'only the workers of this gateway (no fleet)' : summaryOf(proxies)],
        ]}
      />
    </section>
  )
}

function summaryOf({ total, serving, current, by_version }: NonNullable<FleetAnswer['proxies']>): string {
  const versions = Object.entries(by_version).map(
    ([version, count]) => `${whole(count)} on version ${version}`,
  )
  return `${counted(total, 'proxy', 'proxies')}, ${whole(serving)} serving, ${whole(current)} with the newest Snapshot; ${versions.join(', ') || 'no proxy has reported'}`
}

function Workers({ instances }: { readonly instances: readonly Instance[] }) {
  return (
    <section class="card" aria-labelledby="workers">
      <h2 id="workers">Workers</h2>
      <Table
        label="Workers"
        rows={instances}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Worker',
            cell: ({ id, pid }) => (
              <>
                {id} <small class="extra">{pid}</small>
              </>
            ),
          },
          {
            title: 'State',
            cell: ({ state, reasons }) => (
              <>
                <Badge of={COLOURS[state] ?? 'plain'} text={state} />
                {reasons.length > 0 && <div>{reasons.join('; ')}</div>}
              </>
            ),
          },
          {
            title: 'Snapshot',
            cell: ({ snapshot, current }) =>
              snapshot === null ? 'none' : `${snapshot}${current ? '' : ' (older)'}`,
          },
          { title: 'Since', isExtra: true, cell: ({ since }) => <Time at={since} /> },
        ]}
      />
    </section>
  )
}

interface ProxiesProps {
  readonly proxies: NonNullable<FleetAnswer['proxies']>
  /** Time of the newest Snapshot: it decides which proxies are behind. */
  readonly madeAt: string
}

function Proxies({ proxies, madeAt }: ProxiesProps) {
  const { values, set } = useFilters(['state', 'version', 'current'])
  const { state, version, current } = values
  const load = async (page: number, signal: AbortSignal) => {
    const query = { ...(state && { state: state as FleetProxy['state'] }), ...(version && { version }) }
    const newest =
      current === '' ? {} : { current: current === 'newest' ? ('true' as const) : ('false' as const) }
    const found = await ask(
      'listFleetProxies',
      { query: { ...query, ...newest, page, limit: PART_LENGTH } },
      { signal },
    )
    return { rows: found.proxies, total: found.total }
  }
  const turn = [
    proxies.total,
    proxies.serving,
    proxies.unready,
    proxies.starting,
    proxies.stale,
    proxies.current,
  ]
  return (
    <section aria-labelledby="proxies">
      <h2 id="proxies">Proxies</h2>
      <Filters>
        <ChoiceFilter label="State" value={state} choices={STATES} set={(value) => set('state', value)} />
        <ChoiceFilter
          label="Version"
          value={version}
          choices={Object.keys(proxies.by_version)}
          set={(value) => set('version', value)}
        />
        <ChoiceFilter
          label="Snapshot"
          value={current}
          choices={['newest', 'older']}
          set={(value) => set('current', value)}
        />
      </Filters>
      <LongTable
        label="Proxies"
        columns={COLUMNS}
        listKey={JSON.stringify([values, turn, madeAt])}
        keyOf={({ id }) => id}
        load={load}
        empty={
          <Empty
            title={proxies.total === 0 ? 'No proxy has reported in the last hour' : 'No matching proxies'}
          >
            <p>
              To add a proxy to this fleet, run <code>gatehouse proxy</code> with the same{' '}
              <code>bus.url</code> and <code>bus.name</code>. It reports every few seconds.
            </p>
          </Empty>
        }
      />
      {proxies.total > 0 && (
        <p class="hint extra">
          Last 24 h, the worse the higher: serving; starting, or an older Snapshot; unready, stale, or
          sightings lost. A dashed box: no report. Blank: before this manager knew the proxy.
        </p>
      )}
      <Advice proxies={proxies} />
    </section>
  )
}

/** Advice for each state that needs action. */
function Advice({ proxies: { unready, stale, total, current } }: Pick<ProxiesProps, 'proxies'>) {
  const behind = total - current
  const advice = [
    ...(stale > 0
      ? [
          `Missed three heartbeats: ${counted(stale, 'proxy', 'proxies')}. A silent proxy may still serve. Check its process and its connection to NATS.`,
        ]
      : []),
    ...(unready > 0
      ? [
          `Not ready: ${counted(unready, 'proxy', 'proxies')}. The table and the log of the proxy show the reason.`,
        ]
      : []),
    ...(behind > 0
      ? [
          `Without the newest Snapshot: ${counted(behind, 'proxy', 'proxies')}. It arrives within seconds, or the table shows why it was refused.`,
        ]
      : []),
  ]
  if (advice.length === 0) return null
  return (
    <ul class="note warn">
      {advice.map((each) => (
        <li key={each}>{each}</li>
      ))}
    </ul>
  )
}

function troubleOf({ workers, refused_snapshot: refused, sightings }: FleetProxy): string {
  return [
    ...new Set(workers.flatMap(({ reasons }) => reasons)),
    ...(refused === null ? [] : [`refuses Snapshot ${refused.number}: ${refused.reason}`]),
    ...(sightings.waiting > 0 ? [`${counted(sightings.waiting, 'sighting')} pending`] : []),
    ...(sightings.dropped > 0 ? [`${counted(sightings.dropped, 'sighting')} dropped`] : []),
  ].join('; ')
}

const COLUMNS: readonly LongColumn<FleetProxy>[] = [
  {
    title: 'Proxy',
    width: 'minmax(8rem, 2fr)',
    cell: ({ host, id }) => (
      <span title={id}>
        {host} <small>{id.slice(0, 8)}</small>
      </span>
    ),
  },
  {
    title: 'State',
    width: '6.5rem',
    cell: ({ state }) => <Badge of={COLOURS[state] ?? 'plain'} text={state} />,
  },
  {
    title: 'Last 24 h',
    width: 'minmax(5rem, 1.5fr)',
    isExtra: true,
    cell: ({ history }) => <Past history={history} />,
  },
  { title: 'Version', width: '6rem', isExtra: true, cell: ({ version }) => version },
  {
    title: 'Snapshot',
    width: '11rem',
    isExtra: true,
    cell: ({ snapshot, current, snapshot_source }) =>
      snapshot === null
        ? 'none'
        : `${snapshot.number}, ${duration(snapshot.age_s * 1_000)} old${current ? '' : ` (${snapshot_source})`}`,
  },
  {
    title: 'Settings',
    width: '6.5rem',
    isExtra: true,
    cell: ({ config_hash }) => <code title={config_hash}>{config_hash.slice(0, 8)}</code>,
  },
  { title: 'Last report', width: '8rem', isExtra: true, cell: ({ heard_at }) => <Time at={heard_at} /> },
  {
    title: 'Problems',
    width: 'minmax(6rem, 3fr)',
    isExtra: true,
    cell: (proxy) => <span title={troubleOf(proxy)}>{troubleOf(proxy)}</span>,
  },
]
const STATES = ['serving', 'unready', 'starting', 'stale']
const COLOURS: Readonly<Record<string, string>> = {
  ...{ serving: 'good', unready: 'bad', starting: 'warn', stale: 'bad', gone: 'bad' },
}
const EVERY_MS = 3_000
