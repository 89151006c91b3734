import { useRoute } from 'preact-iso'
import type { Campaign } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Badge } from '../../parts/badge.tsx'
import { Facts } from '../../parts/facts.tsx'
import { counted, whole } from '../../parts/format.ts'
import { Page } from '../../parts/page.tsx'
import { Answered, Empty } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'

export function CampaignPage() {
  const { params } = useRoute()
  const id = params['id']!
  const used = useAsked('getCampaign', { path: { id } }, { everyMs: EVERY_MS })
  return (
    <Page
      title={used.answer === null ? 'Campaign' : `Campaign against ${used.answer.host ?? 'a site'}`}
      help="campaigns"
      about={<a href="/dashboard/threats/campaigns">All campaigns</a>}
    >
      <Answered used={used}>
        {(campaign) => (
          <>
            <About campaign={campaign} />
            <Signs signs={campaign.signs} />
            <Requests id={campaign.id} />
          </>
        )}
      </Answered>
    </Page>
  )
}

function About({ campaign }: { readonly campaign: Campaign }) {
  const { id, state, found_at, last_seen_at, members, requests, software_id, user_agent, fingerprints } =
    campaign
  return (
    <section class="card" aria-labelledby="about">
      <h2 id="about">About</h2>
      <Facts
        of={[
          ['Id', <code key="id">{id}</code>],
          ['State', <Badge key="state" of={state === 'running' ? 'high' : 'plain'} text={state} />],
          ['Found', <Time key="found" at={found_at} />],
          ['Last page', <Time key="last" at={last_seen_at} />],
          ['Addresses', whole(members)],
          ['Pages since it was found', whole(requests)],
          ['Claims to be', software_id],
          ['User-Agent', user_agent],
          ['JA4', fingerprints.ja4 === null ? null : <code key="ja4">{fingerprints.ja4}</code>],
          ['HTTP/2', fingerprints.http2 === null ? null : <code key="http2">{fingerprints.http2}</code>],
        ]}
      />
      <p>
        To block it, add a rule with <code>campaign: {id}</code> to the policy, or <code>campaign: true</code>{' '}
        for all campaigns.
      </p>
    </section>
  )
}

function Signs({ signs }: Pick<Campaign, 'signs'>) {
  const { addresses, people, pages_min, pages, different_pages, timing_variation: variation } = signs
  return (
    <section class="card" aria-labelledby="signs">
      <h2 id="signs">Why it is a campaign</h2>
      <ul>
        <li>
          {counted(addresses, 'address', 'addresses')} requested pages without their parts and without
          following a link. {counted(people, 'other address', 'other addresses')} with the same browser and
          headers behave like people.
        </li>
        {pages > 0 && (
          <li>
            {whole(different_pages)} of {counted(pages, 'compared page')} are different.
          </li>
        )}
        {variation !== null && (
          <li>
            The gaps between pages vary by {variation}: near 0 is a clock, 1 is people. People with the same
            browser are counted too.
          </li>
        )}
        <li>
          An address is joined when it requested {counted(pages_min, 'different page')} like that, and leaves
          when it loads a part or follows a link.
        </li>
      </ul>
    </section>
  )
}

function Requests({ id }: { readonly id: string }) {
  const used = useAsked('listRequests', { query: { campaign_id: id, limit: SHOWN } })
  return (
    <section class="card" aria-labelledby="requests">
      <h2 id="requests">Latest requests</h2>
      <Answered used={used}>
        {({ requests }) =>
          requests.length === 0 ? (
            <Empty title="No requests are kept any more" />
          ) : (
            <Table
              label="Latest requests"
              rows={requests}
              keyOf={({ id: request }) => request}
              columns={[
                { title: 'When', cell: ({ seen_at }) => <Time at={seen_at} /> },
                { title: 'Address', cell: ({ address }) => address },
                { title: 'Path', cell: ({ path }) => <code>{path}</code> },
                { title: 'Action', isExtra: true, cell: ({ action }) => action },
              ]}
            />
          )
        }
      </Answered>
    </section>
  )
}

const EVERY_MS = 10_000
const SHOWN = 50
