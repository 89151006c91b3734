import type { SignatureAgentCard } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Facts, Outside } from '../../parts/facts.tsx'
import { Answered, Empty } from '../../parts/states.tsx'
import { purposeOf } from '../live/names.ts'

/** What the agent says about itself in its signature agent card. */
export function AgentCardSection({ id }: { readonly id: string }) {
  const used = useAsked('getAgentCard', { path: { agent_id: id } })
  return (
    <section class="card" aria-labelledby="own-card">
      <h2 id="own-card">Card</h2>
      <Answered used={used}>
        {({ card, url, why }) =>
          card === null ? (
            <Empty title="No card">
              <p>{why}</p>
            </Empty>
          ) : (
            <>
              <p>
                What the agent says about itself at {url}. Its key proves whose card it is, not that it is
                true.
              </p>
              <Facts of={factsOf(card)} />
            </>
          )
        }
      </Answered>
    </section>
  )
}

function factsOf(card: SignatureAgentCard) {
  const { purpose, purposes, trigger, keeps_robots, ignored } = card
  return [
    ['Name', card.name],
    ['Homepage', <Outside key="home" url={card.homepage} />],
    ['Contacts', card.contacts.join(', ')],
    ['Purpose', purpose.join(', ')],
    ['In policies', purposes.map((each) => purposeOf(each)).join(', ')],
    ['Requests are made', trigger === null ? null : TRIGGERS[trigger]],
    ['robots.txt', keeps_robots ? 'says that it keeps to it' : 'does not say that it keeps to it'],
    ['robots.txt token', card.robots_token],
    ['User-Agents', card.user_agents.join(', ')],
    ['Content', card.content],
    ['Rate control', card.rate_control],
    ['Rate', card.rate_expectation],
    ['Known URLs', card.known_urls.join(', ')],
    ['Address ranges', <Outside key="ranges" url={card.ranges_url} />],
    ['Ignored', ignored.join('; ')],
  ] as const
}

const TRIGGERS = { fetcher: 'when a person asks', crawler: 'by itself' } as const
