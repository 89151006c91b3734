import type { ComponentChildren } from 'preact'
import { adviceFor, type ApiProblem } from '../api/problem.ts'
import type { UsedAnswer } from '../api/use-asked.ts'

/** What went wrong, and what to do about it. */
export function ProblemNote({
  problem,
  again,
}: {
  readonly problem: ApiProblem
  readonly again?: () => void
}) {
  return (
    <div class="note bad" role="alert">
      <p>
        <strong>{sentence(problem.message)}</strong>
      </p>
      {problem.errors.length > 1 && (
        <ul>
          {problem.errors.map(({ pointer, detail }) => (
            <li key={pointer + detail}>
              {pointer !== '' && <code>{pointer}</code>} {detail}
            </li>
          ))}
        </ul>
      )}
      <p>{adviceFor(problem)}</p>
      <p class="actions">
        {again !== undefined && (
          <button type="button" onClick={again}>
            Try again
          </button>
        )}
        {problem.requestId !== null && <small>Request {problem.requestId}</small>}
      </p>
    </div>
  )
}

/** Nothing is there, and what to do so that something is. */
export function Empty({
  title,
  children,
}: {
  readonly title: string
  readonly children?: ComponentChildren
}) {
  return (
    <div class="empty">
      <p>
        <strong>{title}</strong>
      </p>
      {children}
    </div>
  )
}

export function Waiting() {
  return (
    <p class="waiting" role="status">
      Loading…
    </p>
  )
}

/** What was answered, else why not; an older answer stays to be seen below what is wrong now. */
export function Answered<Value>({
  used,
  children,
}: {
  readonly used: UsedAnswer<Value>
  readonly children: (answer: Value) => ComponentChildren
}) {
  const { answer, problem, again } = used
  return (
    <>
      {problem !== null && <ProblemNote problem={problem} again={again} />}
      {answer !== null ? children(answer) : problem === null && <Waiting />}
    </>
  )
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.')
}
