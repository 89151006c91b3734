import { useLocation } from 'preact-iso'
import { useId, useMemo, useState } from 'preact/hooks'
import { Answered } from '../../parts/states.tsx'
import { searchManual, type SectionFound } from './manual-search.ts'
import { useSections } from './use-guide.ts'

/** The field above the topics. What is searched for is in the address. */
export function useManualQuery() {
  const { query, path, route } = useLocation()
  const [written, setWritten] = useState(query['q'] ?? '')
  const set = (text: string) => {
    setWritten(text)
    route(text.trim() === '' ? path : `${path}?q=${encodeURIComponent(text)}`, true)
  }
  return { written, set }
}

export function SearchField({ written, set }: ReturnType<typeof useManualQuery>) {
  const id = useId()
  return (
    <search class="filters">
      <div>
        <label for={id}>Search the manual</label>
        <input
          id={id}
          type="search"
          value={written}
          onInput={({ currentTarget }) => set(currentTarget.value)}
        />
      </div>
    </search>
  )
}

export function SearchResults({ query }: { readonly query: string }) {
  const used = useSections()
  const found = useMemo(() => searchManual(used.answer ?? [], query), [used.answer, query])
  return (
    <Answered used={used}>
      {() => (
        <section aria-label="Found">
          <p role="status">
            {found.length === 0
              ? `Nothing in the manual has all of these words: ${query.trim()}`
              : `${found.length} ${found.length === 1 ? 'section' : 'sections'}`}
          </p>
          <ul class="plain found">
            {found.map((each) => (
              <Found key={`${each.section.topic}#${each.section.anchor}`} found={each} />
            ))}
          </ul>
        </section>
      )}
    </Answered>
  )
}

function Found({ found: { section, excerpt } }: { readonly found: SectionFound }) {
  const { topic, page, heading, anchor } = section
  return (
    <li class="card">
      <h2>
        <a href={`/dashboard/help/${topic}${anchor === null ? '' : `#${anchor}`}`}>{heading}</a>
      </h2>
      {heading !== page && <p class="hint">{page}</p>}
      <p>
        {excerpt.map(({ text, isFound }, index) =>
          isFound ? <mark key={index}>{text}</mark> : <span key={index}>{text}</span>,
        )}
      </p>
    </li>
  )
}
