import type { PolicyPreview } from '../../api/operations.ts'
import { percent, whole } from '../../parts/format.ts'

/** What a tested policy would do to requests that get through today, for a person about to apply it. */
export interface Effect {
  readonly look: 'good' | 'warn'
  readonly text: string
}

export function effectOf({
  sightings,
  transitions,
  verdicts,
}: Pick<PolicyPreview, 'sightings' | 'transitions' | 'verdicts'>): Effect {
  const stopped = stoppedIn(transitions)
  if (stopped === 0) return { look: 'good', text: 'Valid policy.' }
  const people = stoppedIn(verdicts.filter(({ name }) => name === 'human'))
  return {
    look: 'warn',
    text: `Valid policy. It stops ${whole(stopped)} of ${whole(sightings)} recorded requests (${percent(stopped / sightings)}) that the policy in force lets through, ${whole(people)} of them from people.`,
  }
}

function stoppedIn(changes: PolicyPreview['transitions']): number {
  return changes
    .filter(({ from, to }) => isStopped(to) && !isStopped(from))
    .reduce((sum, { count }) => sum + count, 0)
}

/** `action`: with its values if two policies are compared, such as `block 403`. */
function isStopped(action: string): boolean {
  return STOPS.has(action.split(' ', 1)[0]!)
}

/** Actions after which a request does not reach the app. */
const STOPS: ReadonlySet<string> = new Set(['block', 'tarpit'])
