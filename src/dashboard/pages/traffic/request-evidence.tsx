import { useAsked } from '../../api/use-asked.ts'
import { EvidenceTable, oddsText } from '../../parts/plots/evidence.tsx'
import { Answered } from '../../parts/states.tsx'

/** How the evidence of a request speaks for a person or for a program. */
export function RequestEvidenceSection({ id }: { readonly id: string }) {
  const used = useAsked('getRequestEvidence', { path: { id } })
  return (
    <section class="card" aria-labelledby="evidence">
      <h2 id="evidence">Evidence</h2>
      <Answered used={used}>
        {({ program, evidence, start, sum }) => (
          <>
            <EvidenceTable evidence={evidence} sides={['person', program]} total={{ start, sum }} />
            <p>
              {sum === 0
                ? 'The weights add up to 0: the odds are even.'
                : `The odds are ${oddsText(sum)} for ${sum < 0 ? 'a person' : PROGRAMS[program]}. At a sum of 0 they are even.`}
            </p>
            <p class="hint">
              By the weights of today. A proof of identity decides by itself. A client that claims to be a
              browser is classified as a program only if evidence contradicts the claim.
            </p>
          </>
        )}
      </Answered>
    </section>
  )
}

const PROGRAMS = { agent: 'an agent', automation: 'automation' } as const
