import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { ask } from '../../api/ask.ts'
import type { Submission, SubmissionReview, SubmissionTrial } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Badge } from '../../parts/badge.tsx'
import { Confirm } from '../../parts/confirm.tsx'
import { Facts } from '../../parts/facts.tsx'
import { counted, whole } from '../../parts/format.ts'
import { Page } from '../../parts/page.tsx'
import { Answered, Empty, ProblemNote } from '../../parts/states.tsx'
import { FullTime, Time } from '../../parts/time.tsx'
import { purposesText } from '../live/names.ts'
import { hrefOf } from './signatures.tsx'
import { COLOUR_OF } from './submissions.tsx'

export function SubmissionPage() {
  const { params } = useRoute()
  const used = useAsked('getSubmission', { path: { id: params['id']! } }, { everyMs: 5_000 })
  return (
    <Page title="Submission" about={<a href="/dashboard/signatures/submissions">All submissions</a>}>
      <Answered used={used}>
        {(submission) => (
          <>
            <About submission={submission} />
            <Analysis submission={submission} />
            <Trial submission={submission} />
            <Review submission={submission} again={used.again} />
          </>
        )}
      </Answered>
    </Page>
  )
}

interface Props {
  readonly submission: Submission
}

function About({ submission }: Props) {
  const { type, fingerprint, agent_name, agent_id, category, purpose, user_agent, notes, status } = submission
  return (
    <section class="card" aria-labelledby="what">
      <h2 id="what">
        <Badge of="plain" text={type} />{' '}
        <a href={hrefOf(submission)}>
          <code>{fingerprint}</code>
        </a>
      </h2>
      <Facts
        of={[
          ['State', <Badge key="state" of={COLOUR_OF[status]} text={status} />],
          ['Proposed name', agent_name],
          [
            'Agent',
            agent_id === null ? null : (
              <a key="agent" href={`/dashboard/agents/${encodeURIComponent(agent_id)}`}>
                {agent_id}
              </a>
            ),
          ],
          ['Category', category],
          ['Purpose', purpose.length === 0 ? null : purposesText(purpose)],
          ['User-Agent', user_agent],
          ['Notes', notes],
          ['Submitted by', submission.submitted_by],
          ['Submitted', <FullTime key="when" at={submission.created_at} />],
          [
            'Decided',
            submission.decided_at === null ? null : (
              <>
                by {submission.decided_by}, <Time at={submission.decided_at} />
              </>
            ),
          ],
          [
            'Rolled back',
            submission.rolled_back_at === null ? null : <Time key="back" at={submission.rolled_back_at} />,
          ],
        ]}
      />
    </section>
  )
}

function Analysis({ submission: { reasons } }: Props) {
  return (
    <section class="card" aria-labelledby="analysis">
      <h2 id="analysis">Analysis</h2>
      {reasons.length === 0 ? (
        <Empty title="No findings" />
      ) : (
        <ul>
          {reasons.map(({ code, detail }) => (
            <li key={code + detail}>{detail}</li>
          ))}
        </ul>
      )}
    </section>
  )
}

function Trial({ submission: { trial } }: Props) {
  if (trial === null) return null
  return (
    <section class="card" aria-labelledby="trial">
      <h2 id="trial">On live traffic</h2>
      <p>
        {trial.is_counting
          ? 'It is counted on live traffic and decides nothing yet.'
          : 'It has stopped counting.'}{' '}
        Since <Time at={trial.since} />: {counted(trial.hits, 'request')} from{' '}
        {counted(trial.addresses, 'address', 'addresses')}.
      </p>
      <Facts of={trialFacts(trial)} />
      {trial.disagreements.by.length > 0 && (
        <ul>
          {trial.disagreements.by.map(({ verdict, agent_id, requests }) => (
            <li key={`${verdict} ${agent_id}`}>
              {counted(requests, 'request')} currently classified as {agent_id ?? verdict}
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function trialFacts(trial: SubmissionTrial): readonly (readonly [string, string])[] {
  return [
    ['Agrees with verdicts', whole(trial.agreements)],
    ['Verdict was undecided', whole(trial.undecided)],
    ['Disagrees with verdicts', whole(trial.disagreements.total)],
    ['Reported as wrong', whole(trial.false_positive_reports)],
    ['Confirmed by feedback', whole(trial.confirmations)],
    ['Denied by feedback', whole(trial.contradictions)],
  ]
}

/** An administrator's review of the submission. */
function Review({
  submission: { id, status, trial, reasons, rolled_back_at },
  again,
}: Props & { readonly again: () => void }) {
  const doing = useDoing()
  const [asks, setAsks] = useState<SubmissionReview['decision'] | null>(null)
  const [despite, setDespite] = useState(false)
  const isOfPeople =
    reasons.some(({ code }) => OF_PEOPLE.has(code)) ||
    (trial?.disagreements.by.some(({ verdict }) => verdict === 'human') ?? false)
  const decide = (decision: SubmissionReview['decision']) => {
    setAsks(null)
    void doing.run(async () => {
      await ask('reviewSubmission', {
        path: { id },
        body: { decision, ...(despite && { despite_people: true }) },
      })
      again()
    })
  }
  const offered = decisionsFor(status, rolled_back_at)
  if (offered.length === 0) return null
  return (
    <section class="card" aria-labelledby="review">
      <h2 id="review">Review</h2>
      {doing.problem !== null && <ProblemNote problem={doing.problem} />}
      {isOfPeople && offered.includes('accept') && (
        <p>
          <label>
            <input
              type="checkbox"
              checked={despite}
              onChange={({ currentTarget }) => setDespite(currentTarget.checked)}
            />{' '}
            Accept although browsers of people share it: they would be classified as this agent
          </label>
        </p>
      )}
      <p class="actions">
        {offered.map((decision) => (
          <button
            key={decision}
            type="button"
            class={decision === 'accept' ? 'main' : ''}
            disabled={doing.isDoing}
            onClick={() => setAsks(decision)}
          >
            {WORDS[decision].button}
          </button>
        ))}
      </p>
      {asks !== null && (
        <Confirm
          title={`${WORDS[asks].button}?`}
          doing={WORDS[asks].button}
          isBad={asks !== 'accept'}
          cancel={() => setAsks(null)}
          done={() => decide(asks)}
        >
          <p>{WORDS[asks].what}</p>
        </Confirm>
      )}
    </section>
  )
}

function decisionsFor(
  status: Submission['status'],
  rolledBackAt: string | null,
): readonly SubmissionReview['decision'][] {
  if (status === 'pending') return ['accept', 'reject']
  return status === 'accepted' && rolledBackAt === null ? ['rollback'] : []
}

const WORDS: Readonly<
  Record<SubmissionReview['decision'], { readonly button: string; readonly what: string }>
> = {
  accept: {
    button: 'Accept',
    what: 'It takes effect in every proxy within two seconds. You can roll it back.',
  },
  reject: {
    button: 'Reject',
    what: 'The submitter sees that it was rejected, with the analysis.',
  },
  rollback: { button: 'Roll back', what: 'It is removed from every proxy within two seconds.' },
}
const OF_PEOPLE = new Set(['browser_fingerprint', 'seen_of_people', 'parts_of_browsers', 'browser_of_agent'])
