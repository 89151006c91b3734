import { useEffect, useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import type { DetectionRequest, DetectionResult } from '../../api/operations.ts'
import { ApiProblem } from '../../api/problem.ts'
import { Badge } from '../../parts/badge.tsx'
import { EvidenceTable } from '../../parts/plots/evidence.tsx'
import { Facts } from '../../parts/facts.tsx'
import { percent } from '../../parts/format.ts'
import { ProblemNote, Waiting } from '../../parts/states.tsx'
import { categoryOf, purposesText } from '../live/names.ts'

/** The gate's verdict on a request, and the reasons. */
export function Detection({ asked }: { readonly asked: DetectionRequest }) {
  const [result, setResult] = useState<DetectionResult | ApiProblem | null>(null)
  // Other input mounts another component: see its `key`.
  useEffect(() => {
    const stop = new AbortController()
    ask('detectAgent', { body: asked }, { signal: stop.signal }).then(setResult, (error: unknown) => {
      if (error instanceof ApiProblem) setResult(error)
    })
    return () => stop.abort()
  }, [])
  if (result === null) return <Waiting />
  if (result instanceof ApiProblem) return <ProblemNote problem={result} />
  return <Verdict result={result} />
}

function Verdict({ result }: { readonly result: DetectionResult }) {
  const { verdict, confidence, name_confidence, software, agent_category, verified } = result
  const { agent_purpose, conflicts, evidence, fingerprints } = result
  return (
    <section class="card" aria-labelledby="verdict">
      <h2 id="verdict">
        Verdict: <Badge of={verdict} />
      </h2>
      <Facts
        of={[
          [
            'Software',
            software === null ? (
              'unknown'
            ) : (
              <a href={`/dashboard/agents/${encodeURIComponent(software.id)}`}>{software.name}</a>
            ),
          ],
          ['Name confidence', software === null ? null : percent(name_confidence)],
          ['Category', agent_category === null ? null : categoryOf(agent_category)],
          ['Purpose', purposesText(agent_purpose)],
          ['Agent likelihood', percent(confidence)],
          ['Verified by', verified],
          ['Contradicted by', conflicts.map((conflict) => conflict.replaceAll('-', ' ')).join(', ')],
          ...FINGERPRINTS.map((type) => [type.toUpperCase(), linked(type, fingerprints[type])] as const),
        ]}
      />
      <h3>Why</h3>
      {evidence.length === 0 ? (
        <p>No evidence found.</p>
      ) : (
        <>
          <EvidenceTable evidence={evidence} sides={['against it', 'for it']} />
          <p class="hint">For or against the verdict, as natural logarithms of odds.</p>
        </>
      )}
    </section>
  )
}

function linked(type: string, fingerprint: string) {
  if (fingerprint === '') return null
  return (
    <a href={`/dashboard/signatures/${type}/${encodeURIComponent(fingerprint)}`}>
      <code>{fingerprint}</code>
    </a>
  )
}

const FINGERPRINTS = ['ja4', 'ja4s', 'ja4h'] as const
