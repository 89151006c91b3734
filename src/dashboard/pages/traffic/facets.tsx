import { useState } from 'preact/hooks'
import type { OperationAnswer } from '../../api/ask.ts'
import { useAsked } from '../../api/use-asked.ts'
import { counted, short, whole } from '../../parts/format.ts'
import { RuleLink } from '../../parts/rule-link.tsx'
import { Answered } from '../../parts/states.tsx'
import { FullTime } from '../../parts/time.tsx'
import { categoryOf, purposeOf } from '../live/names.ts'
import type { RequestQuery } from './request-list.ts'
import type { TrafficValues } from './filters.ts'
import { networkText } from './request-words.ts'

type Facet = OperationAnswer<'getRequestFacets'>['facets'][number]
type FacetValue = Facet['values'][number]
type FacetName = Facet['facet'] & keyof TrafficValues

interface Props {
  readonly query: RequestQuery
  readonly values: TrafficValues
  readonly app: string | null
  set(name: FacetName, value: string): void
}

/** The most frequent values of the requests that fit the filters. A click filters by one, another click by it no more. */
export function Facets(props: Props) {
  const [isOpen, setOpen] = useState(matchMedia(BESIDE).matches)
  return (
    <details class="card facets" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <h2>Counts by value</h2>
      </summary>
      {isOpen && <Counts {...props} />}
    </details>
  )
}

function Counts({ query, ...props }: Props) {
  const facets = Object.keys(TITLES).join()
  const used = useAsked('getRequestFacets', { query: { ...query, facets, limit: SHOWN } })
  return (
    <Answered used={used}>
      {({ requests, estimated, stopped_at, facets }) => (
        <div aria-busy={used.isAsking}>
          <p class="hint">
            {stopped_at === null ? (
              `Of ${counted(requests, 'recorded request')}.`
            ) : (
              <>
                Of the newest {counted(requests, 'request')}, back to <FullTime at={stopped_at} />.
              </>
            )}
            {estimated !== requests &&
              ` Only a share of the requests is recorded: these stand for about ${short(estimated)}, and the counts are estimates.`}
          </p>
          {facets.map((facet) => (
            <Values key={facet.facet} facet={facet} {...props} />
          ))}
        </div>
      )}
    </Answered>
  )
}

function Values({
  facet: { facet, values, others },
  values: filters,
  app,
  set,
}: Omit<Props, 'query'> & { readonly facet: Facet }) {
  const name = facet as FacetName
  const most = Math.max(1, ...values.map(({ estimated }) => estimated))
  if (values.every(({ value }) => value === null)) return null
  return (
    <section aria-label={`Requests by ${TITLES[name]}`}>
      <h3>{TITLES[name]}</h3>
      <ul class="plain">
        {values.map((value) => {
          const filter = filterFor(name, value)
          const isChosen = filter !== null && filters[name] === filter
          return (
            <li key={value.value}>
              {filter === null ? (
                <span class="facet">
                  <Count name={name} value={value} most={most} />
                </span>
              ) : (
                <button
                  type="button"
                  class="facet"
                  aria-pressed={isChosen}
                  onClick={() => set(name, isChosen ? '' : filter)}
                >
                  <Count name={name} value={value} most={most} />
                </button>
              )}
              {isChosen && <RuleLink app={app} filters={{ [name]: filter }} />}
            </li>
          )
        })}
        {others > 0 && <li class="facet soft">{whole(others)} with other values</li>}
      </ul>
    </section>
  )
}

function Count({
  name,
  value,
  most,
}: {
  readonly name: FacetName
  readonly value: FacetValue
  readonly most: number
}) {
  const text = textOf(name, value)
  return (
    <>
      <span class="what" title={text}>
        {text}
      </span>
      <span class="number">{short(value.estimated)}</span>
      <span class="bar" aria-hidden="true">
        <span style={{ width: `${(100 * value.estimated) / most}%` }} />
      </span>
    </>
  )
}

/** The value of the filter; `null`: no filter finds the requests without a value. */
function filterFor(name: FacetName, { value }: FacetValue): string | null {
  return value === null && name === 'verified' ? 'false' : value
}

function textOf(facet: FacetName, { value, name }: FacetValue): string {
  if (value === null) return NONE[facet] ?? 'none'
  if (facet === 'conflict') return value.replaceAll('-', ' ')
  if (facet === 'category') return categoryOf(value)
  if (facet === 'asn') return networkText({ asn: Number(value), name })
  return facet === 'purpose' ? purposeOf(value) : (name ?? value)
}

/** The facets that are shown, in this order. */
const TITLES: Readonly<Partial<Record<Facet['facet'], string>>> = {
  verdict: 'Verdict',
  action: 'Action',
  rule: 'Rule',
  agent_id: 'Agent',
  category: 'Category',
  purpose: 'Purpose',
  verified: 'Verified',
  conflict: 'Contradicted by',
  app: 'App',
  host: 'Host',
  path: 'Path',
  address: 'Address',
  asn: 'Network',
  country: 'Country',
  ja4: 'JA4',
  ja4h: 'JA4H',
  http_version: 'HTTP version',
}
/** Requests without a value. */
const NONE: Readonly<Record<string, string>> = {
  ...{ verified: 'not verified', conflict: 'nothing' },
  ...{ asn: 'unknown', country: 'unknown' },
}
const SHOWN = 6
/** The same width as in the style sheet. */
const BESIDE = '(min-width: 88rem)'
