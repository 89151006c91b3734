import type { Statistics } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { type Chosen, useChosen, withQuery } from '../../parts/chosen/app.ts'
import { useWindow, type Window } from '../../parts/chosen/window.ts'
import { Download } from '../../parts/download.tsx'
import { Page } from '../../parts/page.tsx'
import { Answered } from '../../parts/states.tsx'
import { CATEGORIES, PURPOSES } from '../live/names.ts'
import { Begin } from './begin.tsx'
import { Figures } from './figures.tsx'
import { summaryOf } from './summary.ts'
import { CategoryPlot, Confidence, VerdictPlot } from './plots.tsx'
import { TopAgents, TopApps, TopCategories, TopPaths, TopPurposes } from './tops.tsx'

/** What the numbers of the page are of, and where they lead. */
export interface OverviewScope {
  readonly window: Window
  readonly chosen: Chosen
  /** The list of requests for the same apps and time. */
  to(filters: Readonly<Record<string, string>>): string
}

/** The traffic of a time range at a glance. */
export function Overview() {
  const chosen = useChosen()
  const window = useWindow()
  const query = { window, include: 'previous,apps', ...chosen }
  const used = useAsked('getStats', { query }, { everyMs: EVERY_MS[window] })
  const isCurrent = used.answer?.window === window
  return (
    <Page
      title="Overview"
      help="dashboard#overview"
      about="The requests of a time range, and what was done with them. Each number leads to its requests."
      actions={used.answer !== null && isCurrent && <SavedAs statistics={used.answer} />}
    >
      <Answered used={used}>
        {(statistics) => {
          // The older answer stays until the next one is there.
          const shown = shownOf(statistics.window, chosen)
          if (statistics.detection.requests === 0) return <Begin shown={shown} />
          return (
            <div aria-busy={!isCurrent}>
              <Whole statistics={statistics} shown={shown} />
            </div>
          )
        }}
      </Answered>
    </Page>
  )
}

function Whole({ statistics, shown }: { readonly statistics: Statistics; readonly shown: OverviewScope }) {
  const { detection, by_app } = statistics
  return (
    <>
      <p>{summaryOf(statistics)}</p>
      <Figures statistics={statistics} shown={shown} />
      <div class="card">
        <VerdictPlot statistics={statistics} />
      </div>
      <div class="grid">
        <TopAgents detection={detection} shown={shown} />
        <TopPaths shown={shown} />
        {by_app !== null && by_app.length > 1 && (
          <TopApps apps={by_app} of={detection.requests} shown={shown} />
        )}
        <TopCategories detection={detection} shown={shown} />
        <TopPurposes detection={detection} shown={shown} />
      </div>
      <div class="grid">
        <div class="card">
          <CategoryPlot statistics={statistics} />
        </div>
        <div class="card">
          <Confidence by={detection.by_confidence} />
        </div>
      </div>
    </>
  )
}

function shownOf(window: Window, chosen: Chosen): OverviewScope {
  const to = (filters: Readonly<Record<string, string>>) =>
    withQuery('/dashboard/traffic', { ...chosen, ...filters, window })
  return { window, chosen, to }
}

function SavedAs({ statistics }: { readonly statistics: Statistics }) {
  const categories = CATEGORIES.map(({ category }) => category)
  const purposes = [...PURPOSES.map(({ purpose }) => purpose), 'unpublished']
  return (
    <Download
      name={`traffic-${statistics.window}`}
      columns={['at', 'requests', 'agents', 'blocked', ...categories, ...purposes]}
      rows={() =>
        statistics.series.map(({ at, requests, agents, blocked, by_category, by_purpose }) => [
          ...[at, requests, agents, blocked],
          ...categories.map((category) => by_category[category] ?? 0),
          ...purposes.map((purpose) => by_purpose[purpose] ?? 0),
        ])
      }
      json={() => statistics}
    />
  )
}

/** Long ranges change little from one answer to the next. */
const EVERY_MS: Readonly<Record<Window, number>> = {
  '1h': 5_000,
  '24h': 5_000,
  '7d': 30_000,
  '30d': 30_000,
}
