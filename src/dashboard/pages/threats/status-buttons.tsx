import { useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import type { Case } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { ProblemNote } from '../../parts/states.tsx'
import { verdictOf } from './case-words.ts'

interface Props {
  readonly found: Case
  /** The version that is changed. */
  readonly tag: string | null
  again(): void
}

/** For administrators only. */
export function StatusButtons(props: Props) {
  const { answer: me } = useAsked('getMe', {})
  const [next, setNext] = useState<Case['status'] | null>(null)
  if (me === null || !me.scopes.includes('admin')) return null
  const { status } = props.found
  return (
    <>
      <p class="actions">
        {CHANGES.filter((each) => each.to !== status).map(({ to, text }) => (
          <button key={to} type="button" onClick={() => setNext(to)}>
            {text}
          </button>
        ))}
      </p>
      {next !== null && (
        <Change
          {...props}
          to={next}
          givesFeedback={next === 'false_alarm' && me.apps === '*'}
          close={() => setNext(null)}
        />
      )}
    </>
  )
}

interface ChangeProps extends Props {
  readonly to: Case['status']
  readonly givesFeedback: boolean
  close(): void
}

function Change({ found, tag, again, to, givesFeedback, close }: ChangeProps) {
  const doing = useDoing()
  const [note, setNote] = useState(found.note ?? '')
  const [verdict, setVerdict] = useState<string>(verdictOf(found.reason))
  // A reload meanwhile does not change what was read before the decision.
  const [read] = useState(tag)
  const { text, about } = CHANGES.find((each) => each.to === to)!
  const save = async () => {
    const body = {
      ...{ status: to, note: note.trim() === '' ? null : note },
      ...(givesFeedback && { verdict: verdict === '' ? null : (verdict as 'human' | 'agent') }),
    }
    await ask('updateCase', { path: { id: found.id }, body }, read === null ? {} : { ifMatch: read })
    close()
    again()
  }
  return (
    <Confirm title={`${text}?`} doing={text} cancel={close} done={() => void doing.run(save)}>
      {doing.problem !== null && <ProblemNote problem={doing.problem} />}
      <p>{about}</p>
      {givesFeedback && (
        <label>
          The requests came from
          <select value={verdict} onChange={({ currentTarget }) => setVerdict(currentTarget.value)}>
            <option value="human">people</option>
            <option value="agent">an agent</option>
            <option value="">unknown: give no feedback</option>
          </select>
        </label>
      )}
      <label>
        Note
        <input value={note} maxLength={2000} onInput={({ currentTarget }) => setNote(currentTarget.value)} />
      </label>
    </Confirm>
  )
}

const CHANGES: readonly { readonly to: Case['status']; readonly text: string; readonly about: string }[] = [
  {
    to: 'accepted',
    text: 'Accept',
    about:
      'The threat is known, and nothing more is to be done. Later threats of this kind do not open the case again.',
  },
  {
    to: 'false_alarm',
    text: 'False alarm',
    about: 'It is not a threat. Later threats of this kind do not open the case again.',
  },
  { to: 'open', text: 'Open again', about: 'The case is listed first again. Feedback that was given stays.' },
]
