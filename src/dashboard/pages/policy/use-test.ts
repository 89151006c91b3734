import { useEffect, useRef, useState } from 'preact/hooks'
import type { Policy, PolicyPreview } from '../../api/operations.ts'
import { ApiProblem } from '../../api/problem.ts'
import type { Window } from '../../parts/chosen/window.ts'
import { policyOf, type PolicyPageOwner } from './owner.ts'

/** The effect of a policy on recorded requests. */
interface Tried {
  /** The text of the policy. */
  readonly text: string
  readonly preview: PolicyPreview
  /** More requests are being examined. */
  readonly isReading: boolean
}

/**
 * Tests policies on recorded requests. `test` resolves with a first answer, from the requests of a short time. If there are
 * more requests, a longer answer replaces it.
 */
export function useTest(owner: PolicyPageOwner) {
  const [tried, setTried] = useState<Tried | null>(null)
  const turn = useRef(0)
  useEffect(() => () => void turn.current++, [])
  const test = async (text: string, policy: Policy, window: Window) => {
    const own = ++turn.current
    const preview = (time_ms: number) =>
      policyOf(owner).preview({ policy, window, against: 'current', time_ms })
    const show = (next: Tried) => turn.current === own && setTried(next)
    setTried(null)
    const first = await preview(FIRST_MS)
    show({ text, preview: first, isReading: !first.complete })
    if (!first.complete)
      void readOn(preview, first).then((all) => show({ text, preview: all, isReading: false }))
  }
  return { tried, test }
}

async function readOn(preview: (timeMs: number) => Promise<PolicyPreview>, first: PolicyPreview) {
  try {
    const longer = await preview(LONGER_MS)
    return longer.sightings > first.sightings ? longer : first
  } catch (error) {
    // The first answer is true without it.
    if (error instanceof ApiProblem) return first
    throw error
  }
}

const FIRST_MS = 200
const LONGER_MS = 1_000
