import { useEffect, useRef } from 'preact/hooks'
import { Badge } from '../../../parts/badge.tsx'
import { counted } from '../../../parts/format.ts'
import { Time } from '../../../parts/time.tsx'
import { nameOf, type PlacedRule, type WrittenRule } from './policy-rules.ts'
import { RuleForm } from './rule-form.tsx'
import { actionIn, ruleSentence } from './sentence.ts'
import type { Hits } from './use-hits.ts'

interface Props {
  readonly placed: PlacedRule
  readonly number: number
  /** `null`: the policy has only one. */
  readonly layer: string | null
  readonly hits: Hits
  readonly href: string
  readonly isOpen: boolean
  /** The address names it: it is scrolled to. */
  readonly isShown: boolean
  readonly may: { readonly up: boolean; readonly down: boolean }
  readonly drag: {
    /** Another rule is dragged, and may be dropped here. */
    readonly isOver: boolean
    start(): void
    end(): void
    drop(): void
  }
  /** The problem of a member, by its place below the rule. */
  errorAt(place: string): string | null
  toggle(): void
  set(rule: WrittenRule): void
  remove(): void
  step(by: -1 | 1): void
}

/** A rule in words, with its form if it is open. */
export function RuleItem(props: Props) {
  const { placed, number, layer, isOpen, isShown, drag, may, errorAt, toggle, set, remove, step } = props
  const { rule } = placed
  const name = nameOf(rule)
  const title = name === '' ? `rule ${number}` : name
  const error = errorAt('')
  const item = useRef<HTMLLIElement>(null)
  useEffect(() => {
    if (isShown) item.current?.scrollIntoView({ block: 'center' })
  }, [isShown])
  return (
    <li
      ref={item}
      aria-current={isShown ? 'true' : undefined}
      class={drag.isOver ? 'rule target' : 'rule'}
      onDragOver={(event) => drag.isOver && event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        drag.drop()
      }}
    >
      <div class="rule-head">
        <span
          class="grip"
          aria-hidden="true"
          title="Drag to move"
          draggable
          onDragStart={(event) => {
            const item = event.currentTarget.closest('li')!
            event.dataTransfer?.setDragImage(item, 0, 0)
            event.dataTransfer?.setData('text/plain', title)
            drag.start()
          }}
          onDragEnd={drag.end}
        >
          ⠿
        </span>
        <div>
          <p>
            <span class="soft">{number}.</span> <strong>{title}</strong> <Badges rule={rule} layer={layer} />
          </p>
          <p class="break">{rule === null ? 'Not an object.' : ruleSentence(rule)}</p>
          <HitsLine {...props} />
          {error !== null && !isOpen && <p class="hint wrong">{error}</p>}
        </div>
        <div class="actions">
          <button
            type="button"
            class="quiet"
            data-step="-1"
            disabled={!may.up}
            aria-label={`Move ${title} up`}
            onClick={() => step(-1)}
          >
            ↑
          </button>
          <button
            type="button"
            class="quiet"
            data-step="1"
            disabled={!may.down}
            aria-label={`Move ${title} down`}
            onClick={() => step(1)}
          >
            ↓
          </button>
          {rule !== null && (
            <button type="button" class="quiet" aria-expanded={isOpen} onClick={toggle}>
              {isOpen ? 'Close' : 'Edit'}
              <span class="hidden"> {title}</span>
            </button>
          )}
          <button type="button" class="quiet" aria-label={`Remove ${title}`} onClick={remove}>
            Remove
          </button>
        </div>
      </div>
      {isOpen && rule !== null && <RuleForm rule={rule} errorAt={errorAt} set={set} />}
    </li>
  )
}

function Badges({ rule, layer }: { readonly rule: WrittenRule | null; readonly layer: string | null }) {
  const [action] = actionIn(rule?.['action'])
  const expires = rule?.['expires']
  const hasExpired = typeof expires === 'string' && Date.parse(expires) < Date.now()
  return (
    <>
      {action !== '' && <Badge of={action} text={action.replace('_', ' ')} />}{' '}
      {rule?.['dry_run'] === true && <Badge of="warn" text="on trial" />}{' '}
      {hasExpired && <Badge of="bad" text="expired" />} {layer !== null && <Badge of="layer" text={layer} />}
    </>
  )
}

function HitsLine({ placed: { rule }, hits, href }: Pick<Props, 'placed' | 'hits' | 'href'>) {
  const name = nameOf(rule)
  const [count, last] = [hits.countOf(name), hits.lastOf(name)]
  if (count === null && last === undefined) return null
  // What a rule on trial would do is not counted where requests are.
  if (rule?.['dry_run'] === true && !count && !last)
    return <p class="hint">On trial: “Validate and test” counts its requests.</p>
  return (
    <p class="hint">
      {count !== null && (count === 0 ? 'no requests' : <a href={href}>{counted(count, 'request')}</a>)}
      {count !== null && last !== undefined && ', '}
      {last !== undefined &&
        (last === null ? (
          'none is recorded'
        ) : (
          <>
            last one <Time at={last} />
          </>
        ))}
    </p>
  )
}
