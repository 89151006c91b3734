import { ask } from '../../api/ask.ts'
import type { Campaign } from '../../api/operations.ts'
import { Badge } from '../../parts/badge.tsx'
import { whole } from '../../parts/format.ts'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { ThreatTabs } from './threat-tabs.tsx'

export function Campaigns() {
  const load = async (page: number, signal: AbortSignal) => {
    const found = await ask('listCampaigns', { query: { page, limit: PART_LENGTH } }, { signal })
    return { rows: found.campaigns, total: found.total }
  }
  return (
    <Page
      title="Campaigns"
      help="campaigns"
      about="Crawlers that come from many addresses with the TLS and the headers of a real browser."
    >
      <ThreatTabs current="campaigns" />
      <LongTable
        label="Campaigns"
        columns={COLUMNS}
        listKey="campaigns"
        keyOf={({ id }) => id}
        load={load}
        hrefOf={({ id }) => `/dashboard/threats/campaigns/${id}`}
        empty={
          <Empty title="No campaigns found">
            <p>
              A campaign is found when far more addresses request pages without their parts and links than
              people explain.
            </p>
          </Empty>
        }
      />
    </Page>
  )
}

const COLUMNS: readonly LongColumn<Campaign>[] = [
  { title: 'Site', width: 'minmax(8rem, 3fr)', cell: ({ host, id }) => host ?? id },
  {
    title: 'State',
    width: '6rem',
    cell: ({ state }) => <Badge of={state === 'running' ? 'high' : 'plain'} text={state} />,
  },
  {
    title: 'Addresses',
    width: '7rem',
    isExtra: true,
    isNumber: true,
    cell: ({ members }) => whole(members),
  },
  {
    title: 'Pages since found',
    width: '10rem',
    isExtra: true,
    isNumber: true,
    cell: ({ requests }) => whole(requests),
  },
  {
    title: 'Browser',
    width: 'minmax(6rem, 1fr)',
    isExtra: true,
    cell: ({ software_id }) => software_id ?? '',
  },
  { title: 'Found', width: '9rem', isExtra: true, cell: ({ found_at }) => <Time at={found_at} /> },
]
