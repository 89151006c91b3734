import type { ComponentChildren } from 'preact'
import { Facts } from './facts.tsx'
import { FullTime } from './time.tsx'

/** Any JSON object for people: names as words, times in their zone. */
export function Details({ of }: { readonly of: Readonly<Record<string, unknown>> }) {
  return <Facts of={Object.entries(of).map(([name, value]) => [words(name), shown(value)] as const)} />
}

function shown(value: unknown): ComponentChildren {
  if (value === null || value === undefined) return null
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return TIME.test(value) ? <FullTime at={value} /> : value
  if (Array.isArray(value)) {
    if (value.length === 0) return 'none'
    if (value.every((each) => typeof each !== 'object')) return value.join(', ')
    return (
      <ul class="plain">
        {value.map((each, index) => (
          <li key={index}>{shown(each)}</li>
        ))}
      </ul>
    )
  }
  return <Details of={value as Readonly<Record<string, unknown>>} />
}

function words(name: string): string {
  const text = name.replaceAll('_', ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/
