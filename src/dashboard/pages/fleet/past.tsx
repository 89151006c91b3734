import type { FleetProxy } from '../../api/operations.ts'
import { duration, full } from '../../parts/format.ts'
import './past.css'

type Run = FleetProxy['history'][number]

/** How a proxy was in the last 24 hours, as a strip. Blank: not known. */
export function Past({ history }: Pick<FleetProxy, 'history'>) {
  if (history.length === 0) return null
  const endMs = Date.parse(history.at(-1)!.to)
  return (
    <span class="past" role="img" aria-label={pastText(history)}>
      {history.map((run) => {
        const [fromMs, toMs] = [Date.parse(run.from), Date.parse(run.to)]
        return (
          <span
            key={run.from}
            class={`past-${lookOf(run)}`}
            title={runText(run)}
            style={{
              left: `${100 - (100 * (endMs - fromMs)) / DAY_MS}%`,
              width: `${(100 * (toMs - fromMs)) / DAY_MS}%`,
            }}
          />
        )
      })}
    </span>
  )
}

/** Each kind of trouble with its length in all. */
function pastText(history: readonly Run[]): string {
  const lengths = new Map<string, number>()
  for (const run of history)
    for (const trouble of troublesOf(run))
      lengths.set(trouble, (lengths.get(trouble) ?? 0) + Date.parse(run.to) - Date.parse(run.from))
  const known = Date.parse(history.at(-1)!.to) - Date.parse(history[0]!.from)
  const troubles = [...lengths].map(([trouble, ms]) => `${trouble} for ${duration(ms)}`)
  return `${duration(known)} known: ${troubles.join(', ') || 'no trouble'}`
}

function troublesOf({ state, behind, refusing, losing }: Run): readonly string[] {
  return [
    ...(state === 'serving' ? [] : [state]),
    ...(behind ? ['older Snapshot'] : []),
    ...(refusing ? ['refused a Snapshot'] : []),
    ...(losing ? ['lost sightings'] : []),
  ]
}

function runText(run: Run): string {
  const text = troublesOf(run).join(', ') || 'serving'
  return `${full(run.from)} to ${full(run.to)}: ${text}`
}

function lookOf({ state, behind, refusing, losing }: Run): string {
  if (state === 'away') return 'away'
  if (state === 'stale' || state === 'unready' || losing) return 'bad'
  return state === 'starting' || behind || refusing ? 'warn' : 'good'
}

const DAY_MS = 86_400_000
