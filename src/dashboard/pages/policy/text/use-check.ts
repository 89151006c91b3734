import { useEffect, useMemo, useState } from 'preact/hooks'
import type { PolicyWarning } from '../../../api/operations.ts'
import { ApiProblem } from '../../../api/problem.ts'
import { policyOf, type PolicyPageOwner } from '../owner.ts'
import type { Written } from '../written.ts'
import { policyProblems, syntaxProblems, type TextProblem } from './problems.ts'

/**
 * The problems of a text while it is written. Once it is YAML, the server checks it as it would check a policy to be
 * applied. `known`: the warnings of the policy in force.
 */
export function useCheck(
  owner: PolicyPageOwner,
  written: Written,
  isChanged: boolean,
  known: readonly PolicyWarning[],
): readonly TextProblem[] {
  const [found, setFound] = useState<{
    readonly of: Written
    readonly problems: readonly TextProblem[]
  } | null>(null)
  useEffect(() => {
    if (written.kind === 'wrong' || !isChanged) return
    let isOld = false
    const timer = setTimeout(async () => {
      const problems = await checked(owner, written)
      if (!isOld && problems !== null) setFound({ of: written, problems })
    }, PAUSE_MS)
    return () => {
      isOld = true
      clearTimeout(timer)
    }
  }, [written, isChanged])
  return useMemo(() => {
    if (written.kind === 'wrong') return syntaxProblems(written)
    if (!isChanged) return policyProblems(written, 'warning', known)
    return found?.of === written ? found.problems : NONE
  }, [written, isChanged, found, known])
}

/** `null`: the server cannot say. Testing and applying the policy show why. */
async function checked(owner: PolicyPageOwner, written: Written & { kind: 'policy' }) {
  const { policy } = written
  try {
    // Any request will do: the policy is checked before it is judged.
    const { warnings } = await policyOf(owner).explain({ request: {}, policy }, null)
    return policyProblems(written, 'warning', warnings)
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    const problems = policyProblems(written, 'error', error.errors, '/policy')
    return problems.length === 0 ? null : problems
  }
}

const NONE: readonly TextProblem[] = []
/** After the last letter. */
const PAUSE_MS = 600
