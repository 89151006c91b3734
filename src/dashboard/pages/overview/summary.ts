import type { Statistics } from '../../api/operations.ts'
import { counted, percent, whole } from '../../parts/format.ts'

/** The traffic of a time range in a sentence. Each share is one of all requests, and says whose. */
export function summaryOf({ detection, agents }: Pick<Statistics, 'detection' | 'agents'>): string {
  const { requests, agents: ofAgents, by_category, verified, blocked } = detection
  const unnamed = by_category['unnamed'] ?? 0
  const share = (count: number) => percent(requests === 0 ? 0 : count / requests)
  // Of a part of the apps, nothing is known about what is new.
  const fresh = agents.new === null ? '' : ` (${whole(agents.new)} new)`
  const named = `${share(ofAgents - unnamed)} from ${counted(agents.seen, 'named agent')}${fresh}`
  const rest = unnamed === 0 ? '' : `, ${share(unnamed)} from agents without a name`
  return (
    `${counted(requests, 'request')}, ${share(ofAgents)} of them from agents` +
    (ofAgents === 0 ? '. ' : `: ${named}${rest}. `) +
    `${whole(verified)} verified, ${whole(blocked)} blocked.`
  )
}
