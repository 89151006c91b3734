import * as z from 'zod'
import { type AgentCard, TRIGGERS } from '../../classify/known/claims/agent-card.ts'
import { parseSoftware, PURPOSES } from '../../classify/known/software.ts'
import { type ApiOffered, operation } from './operation.ts'
import { softwareInPath } from './software-id.ts'

const text = z.string().nullable()
const texts = z.array(z.string())
const card = z
  .strictObject({
    name: text,
    homepage: text,
    contacts: texts,
    purpose: texts.meta({ description: 'As the agent writes it.' }),
    purposes: z.array(z.enum(PURPOSES)).meta({ description: 'Its words for purposes of policies.' }),
    trigger: z.enum(TRIGGERS).nullable().meta({
      description:
        '`fetcher`: a person asks for its requests. `crawler`: it decides by itself. `null`: not stated.',
    }),
    user_agents: texts,
    robots_token: text.meta({ description: 'Its name in robots.txt.' }),
    keeps_robots: z.boolean().meta({ description: 'Whether it says that it keeps to robots.txt.' }),
    content: text,
    rate_control: text,
    rate_expectation: text,
    known_urls: texts,
    ranges_url: text.meta({ description: 'Where its address ranges are published.' }),
    ignored: texts.meta({ description: 'Members that are ignored, and why.' }),
  })
  .meta({
    id: 'SignatureAgentCard',
    description: 'What the agent says about itself. Nothing of it is verified.',
  })
const found = z
  .strictObject({
    agent_id: z.string(),
    url: text.meta({ description: 'Where it was looked for: the key directory of the agent.' }),
    card: card.nullable(),
    why: text.meta({ description: 'Why the agent has no card. `null`: it has one.' }),
  })
  .meta({ id: 'FoundAgentCard' })

const getAgentCard = operation({
  id: 'getAgentCard',
  method: 'GET',
  path: '/agents/{agent_id}/card',
  tag: 'Agents',
  summary: "Get an agent's card",
  description:
    'The signature agent card in the key directory of the agent, fetched now or in the last minutes, with the limits of config/guide/agent-cards.md. Cards of registries are known to proxies only.',
  scopes: ['read'],
  reach: 'filtered',
  params: z.strictObject({ agent_id: z.string() }),
  find: softwareInPath,
  answer: found,
  run: async ({ subject }, { cards }) => {
    const { signatureAgent } = parseSoftware(JSON.parse(subject.document)).verification
    const { url, card: read, why } = await cards.find(signatureAgent)
    return { body: { agent_id: subject.id, url, card: read === null ? null : shownCard(read), why } }
  },
})

export const AGENT_CARD_OPERATIONS: readonly ApiOffered[] = [getAgentCard]

function shownCard(read: AgentCard): z.output<typeof card> {
  const { name, homepage, trigger, content } = read
  return {
    ...{ name, homepage, trigger, content },
    contacts: [...read.contacts],
    purpose: [...read.purpose],
    purposes: [...read.purposes],
    user_agents: [...read.userAgents],
    robots_token: read.robotsToken,
    keeps_robots: read.keepsRobots,
    rate_control: read.rateControl,
    rate_expectation: read.rateExpectation,
    known_urls: [...read.knownUrls],
    ranges_url: read.rangesUrl,
    ignored: [...read.ignored],
  }
}
