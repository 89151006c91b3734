import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import type { Policy } from '../../../api/operations.ts'
import { withApp } from '../../../parts/chosen/app.ts'
import { freeName } from '../../../parts/made-rule.ts'
import type { PolicyPageOwner } from '../owner.ts'
import { added, movedTo, nameOf, pointerTo, replaced, rulesIn, stepped, without } from './policy-rules.ts'
import { RuleItem } from './rule-item.tsx'
import { ActionFields } from './rule-form.tsx'
import { otherwiseSentence } from './sentence.ts'
import { useHits } from './use-hits.ts'

interface Props {
  readonly owner: PolicyPageOwner
  /** The policy in the editor. */
  readonly policy: Policy
  readonly inForce: Policy
  /** The problem of a part of the policy, by its JSON Pointer. */
  errorAt(pointer: string): string | null
  set(policy: Policy): void
}

/** The rules of the policy in the editor: in words, as forms, and in an order that can be changed. */
export function Rules({ owner, policy, inForce, errorAt, set }: Props) {
  const rules = rulesIn(policy)
  const known = rulesIn(inForce).map(({ rule }) => nameOf(rule))
  const hits = useHits(owner, known)
  /** Of the rule whose form is shown. */
  const [open, setOpen] = useState<number | 'otherwise' | null>(null)
  const [dragged, setDragged] = useState<number | null>(null)
  const [said, setSaid] = useState('')
  const { list, focusLater } = useFocus()
  const { query } = useLocation()
  const shown = query['show'] ?? null
  const moved = (next: Policy, from: number, to: number) => {
    set(next)
    if (typeof open === 'number') setOpen(afterMove(open, from, to))
    setSaid(`${nameOf(rules[from]!.rule)} is now rule ${to + 1} of ${rules.length}.`)
  }
  const step = (at: number, by: -1 | 1) => {
    const next = stepped(policy, at, by)
    if (next === null) return
    moved(next.policy, at, next.at)
    focusLater(next.at, by)
  }
  const isLayered = rules.some(({ layer }) => layer !== 'rules')
  return (
    <section aria-labelledby="rules" class="rules">
      <h3 id="rules">Rules</h3>
      <p class="hint">
        Counts are of recorded requests of the last 24 hours. Drag a rule, or press its arrows, to change the
        order.
      </p>
      <ol class="plain" ref={list}>
        {rules.slice(0, SHOWN_MAX).map((placed, at) => (
          <RuleItem
            key={`${at}`}
            placed={placed}
            number={at + 1}
            layer={isLayered ? placed.layer : null}
            hits={hits}
            href={hrefOf(owner, nameOf(placed.rule))}
            isShown={nameOf(placed.rule) === shown}
            isOpen={open === at}
            errorAt={(place) => errorAt(`${pointerTo(placed)}${place}`)}
            may={{ up: stepped(policy, at, -1) !== null, down: stepped(policy, at, 1) !== null }}
            toggle={() => setOpen(open === at ? null : at)}
            set={(rule) => set(replaced(policy, at, rule))}
            remove={() => {
              set(without(policy, at))
              setOpen(null)
              setSaid(`${nameOf(placed.rule)} is removed.`)
            }}
            step={(by) => step(at, by)}
            drag={{
              isOver: dragged !== null && dragged !== at,
              start: () => setDragged(at),
              end: () => setDragged(null),
              drop: () => {
                if (dragged !== null && dragged !== at) moved(movedTo(policy, dragged, at), dragged, at)
                setDragged(null)
              },
            }}
          />
        ))}
      </ol>
      {rules.length > SHOWN_MAX && <p class="hint">The other {rules.length - SHOWN_MAX} are in the text.</p>}
      <Otherwise
        policy={policy}
        isOpen={open === 'otherwise'}
        toggle={() => setOpen(open === 'otherwise' ? null : 'otherwise')}
      >
        <ActionFields
          action={policy.otherwise ?? 'tag'}
          errorAt={(place) => errorAt(`/otherwise${place}`)}
          set={(otherwise) => set({ ...policy, otherwise } as Policy)}
        />
      </Otherwise>
      <p class="actions">
        <button
          type="button"
          onClick={() => {
            const name = freeName(JSON.stringify(policy), {})
            set(added(policy, { name, when: {}, action: 'block', dry_run: true }))
            setOpen(rules.length)
          }}
        >
          Add a rule
        </button>
      </p>
      <span class="hidden" role="status">
        {said}
      </span>
    </section>
  )
}

function Otherwise({
  policy,
  isOpen,
  toggle,
  children,
}: {
  readonly policy: Policy
  readonly isOpen: boolean
  readonly toggle: () => void
  readonly children: ComponentChildren
}) {
  return (
    <div class="rule">
      <div class="rule-head">
        <p>{otherwiseSentence(policy.otherwise)}</p>
        <button type="button" class="quiet" aria-expanded={isOpen} onClick={toggle}>
          {isOpen ? 'Close' : 'Edit'}
          <span class="hidden"> what happens if no rule matches</span>
        </button>
      </div>
      {isOpen && children}
    </div>
  )
}

/** The button that moved a rule is used again, at its new place. */
function useFocus() {
  const list = useRef<HTMLOListElement>(null)
  const wanted = useRef<{ readonly at: number; readonly by: -1 | 1 } | null>(null)
  useEffect(() => {
    if (wanted.current === null) return
    const { at, by } = wanted.current
    wanted.current = null
    const buttons = list.current?.children[at]?.querySelectorAll<HTMLButtonElement>('[data-step]') ?? []
    const usable = [...buttons].filter(({ disabled }) => !disabled)
    const same = usable.find(({ dataset }) => dataset['step'] === String(by))
    ;(same ?? usable[0])?.focus()
  })
  const focusLater = (at: number, by: -1 | 1) => {
    wanted.current = { at, by }
  }
  return { list, focusLater }
}

/** Where a rule is after another one was moved. */
function afterMove(at: number, from: number, to: number): number {
  if (at === from) return to
  const removed = at > from ? at - 1 : at
  return removed >= to ? removed + 1 : removed
}

/** The requests that a rule has decided. */
function hrefOf(owner: PolicyPageOwner, name: string): string {
  return withApp('/dashboard/traffic', owner, { rule: name, window: '24h' })
}

const SHOWN_MAX = 200
