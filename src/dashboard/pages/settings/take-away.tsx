import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useDoing } from '../../api/use-doing.ts'
import { Confirm } from '../../parts/confirm.tsx'

interface Props {
  /** The button text: `Revoke`. */
  readonly verb: string
  /** The name of the item. */
  readonly name: string
  readonly children: ComponentChildren
  work(): Promise<void>
}

/** A button for an irreversible action: asks first. */
export function TakeAway({ verb, name, children, work }: Props) {
  const doing = useDoing()
  const [asks, setAsks] = useState(false)
  return (
    <>
      <button
        type="button"
        aria-label={`${verb} ${name}`}
        disabled={doing.isDoing}
        onClick={() => setAsks(true)}
      >
        {verb}
      </button>
      {doing.problem !== null && <span role="alert"> {doing.problem.message}</span>}
      {asks && (
        <Confirm
          title={`${verb} ${name}?`}
          doing={verb}
          isBad
          cancel={() => setAsks(false)}
          done={() => {
            setAsks(false)
            void doing.run(work)
          }}
        >
          {children}
        </Confirm>
      )}
    </>
  )
}
