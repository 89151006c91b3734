import type { ComponentChildren } from 'preact'
import { adviceFor, type ApiProblem } from '../api/problem.ts'
import type { UsedAnswer } from '../api/use-asked.ts'

/** A problem and advice. */
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
      <p>{adviceFor(problem)}</p>
      {problem.errors.length > 1 && (
        <ul>
          {problem.errors.map(({ pointer, detail }) => (
            <li key={pointer + detail}>
              {pointer !== '' && <code>{pointer}</code>} {detail}
            </li>
          ))}
        </ul>
      )}
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

/** An empty state with advice on how to fill it. */
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

/** The answer or its problem; an older answer stays visible below the problem. */
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
