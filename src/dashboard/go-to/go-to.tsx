import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { useLoaded } from '../api/use-asked.ts'
import { useTopics } from '../pages/help/use-guide.ts'
import { allApps } from '../parts/chosen/use-apps.ts'
import { counted } from '../parts/format.ts'
import { type Destination, placesFor } from './choices.ts'
import './go-to.css'
import { useAgents } from './use-agents.ts'
import { useDialog } from './use-dialog.ts'

interface Props {
  /** The pages that the user may open. */
  readonly pages: readonly Destination[]
  /** Whether the user may read agents and apps. */
  readonly isReader: boolean
  close(): void
  showKeys(): void
}

/** Goes to a page, a setting, a page of the manual, an app, an agent or a request. The focus stays in its field. */
export function GoTo({ pages, isReader, close, showKeys }: Props) {
  const dialog = useDialog(close)
  const list = useRef<HTMLDivElement>(null)
  const id = useId()
  const { route } = useLocation()
  const [written, setWritten] = useState('')
  const [chosen, setChosen] = useState<string | null>(null)
  const text = written.trim()
  const topics = useTopics()
  const apps = useLoaded('apps', async (signal) => ({
    value: isReader ? await allApps(signal) : [],
    tag: null,
  }))
  const agents = useAgents(text, isReader)
  const groups = useMemo(() => {
    const found = agents.answer?.text === text ? agents.answer.agents : []
    return placesFor(text, { pages, topics: topics.answer ?? [], apps: apps.answer ?? [], agents: found })
  }, [text, pages, topics.answer, apps.answer, agents.answer])
  const places = groups.flatMap((group) => group.places)
  const at = Math.max(
    0,
    places.findIndex(({ href }) => href === chosen),
  )
  const problem = topics.problem ?? apps.problem ?? agents.problem
  const optionId = (index: number) => `${id}-${index}`
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [at, groups])

  const go = (place: Destination | undefined) => {
    if (place === undefined) return
    // First the focus returns to the page, whose heading then may get it.
    dialog.current!.close()
    route(place.href)
  }
  const pressed = (event: KeyboardEvent) => {
    if (event.isComposing) return
    const step = STEPS[event.key]
    if (step !== undefined && places.length > 0)
      setChosen(places[(at + step + places.length) % places.length]!.href)
    else if (event.key === 'Enter') go(places[at])
    else return
    event.preventDefault()
  }
  let index = 0
  return (
    <dialog ref={dialog} class="go-to" aria-label="Go to">
      <input
        type="text"
        role="combobox"
        aria-label="Go to"
        aria-autocomplete="list"
        aria-expanded={places.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={places.length > 0 ? optionId(at) : undefined}
        aria-describedby={`${id}-hint`}
        placeholder="Page, setting, manual, app, agent, id or address"
        autocomplete="off"
        spellcheck={false}
        enterkeyhint="go"
        maxLength={TEXT_MAX}
        value={written}
        onInput={({ currentTarget }) => {
          setWritten(currentTarget.value)
          setChosen(null)
        }}
        onKeyDown={pressed}
      />
      {places.length > 0 && (
        <div id={`${id}-list`} ref={list} role="listbox" aria-label="Places">
          {groups.map((group) => (
            // biome-ignore lint/a11y/useSemanticElements: no fieldset stands in a list box
            <div key={group.name} role="group" aria-label={group.name}>
              <div class="group-name" aria-hidden="true">
                {group.name}
              </div>
              {group.places.map((place) => {
                const own = index++
                return (
                  // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: its combobox has the focus and the keys
                  <div
                    key={place.href}
                    id={optionId(own)}
                    role="option"
                    aria-selected={own === at}
                    onClick={() => go(place)}
                  >
                    {place.title}
                    {place.about !== undefined && <small> {place.about}</small>}
                  </div>
                )
              })}
            </div>
          ))}
        </div>
      )}
      <p role="status" class={places.length > 0 ? 'hidden' : ''}>
        {statusOf(text, places.length, agents.isAsking)}
      </p>
      {problem !== null && <p class="hint wrong">Some places are missing: {problem.message}</p>}
      <p id={`${id}-hint`} class="foot">
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> choose, <kbd>Enter</kbd> opens, <kbd>Esc</kbd> closes
        </span>
        <span class="actions">
          <button type="button" class="quiet" onClick={showKeys}>
            All keys
          </button>
          <button type="button" class="quiet" onClick={() => dialog.current!.close()}>
            Close
          </button>
        </span>
      </p>
    </dialog>
  )
}

function statusOf(text: string, found: number, isSearching: boolean): string {
  if (found > 0) return counted(found, 'place')
  return isSearching ? 'Searching agents…' : `Nothing found for “${text}”`
}

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }
const TEXT_MAX = 200
