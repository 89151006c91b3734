import type { PublishedRanges } from '../classify/known/published-ranges.ts'
import type { Software } from '../classify/known/software.ts'
import type { RangesInUse } from '../identity/address/ranges-refresher.ts'
import type { FetchedRanges } from '../identity/address/ranges-store.ts'
import { type SignatureSet, softwareOf } from '../plane/signature-set.ts'

/**
 * Adds fetched address ranges to the software. A fetched list replaces an older one with the
 * same URL. If the older list is marked as partial, the fetched one is marked as partial too,
 * because it may also lack addresses.
 */
export function withFetchedRanges(
  list: readonly Software[],
  fetched: readonly FetchedRanges[],
): readonly Software[] {
  if (fetched.length === 0) return list
  const byUrl = new Map(fetched.map(({ url, published }) => [url, published]))
  const newest = newestByUrl(list)
  const given = new Set<string>()
  return list.map((software) => {
    const { verification } = software
    const { rangesUrl, ranges } = verification
    const published = rangesUrl === null ? undefined : byUrl.get(rangesUrl)
    if (rangesUrl === null || published === undefined || software.kind !== 'agent') return software
    const before = newest.get(rangesUrl)
    const isOutdated = before !== undefined && before.date > published.date
    // An agent without ranges of its own uses those of another agent with the same URL.
    if (isOutdated || (ranges === null && (before !== undefined || given.has(rangesUrl)))) return software
    given.add(rangesUrl)
    const isPartial = ranges?.isPartial ?? false
    return { ...software, verification: { ...verification, ranges: { ...published, isPartial } } }
  })
}

/** The address ranges in use that have a URL to fetch. */
export async function rangesInUse(set: SignatureSet): Promise<readonly RangesInUse[]> {
  const list = await softwareOf(set, (piece) => piece.includes('"ranges_url"'))
  const agents = list.filter(({ kind }) => kind === 'agent')
  const newest = newestByUrl(agents)
  const inUse = new Map<string, RangesInUse>()
  for (const { id, verification } of agents) {
    const { rangesUrl, ranges } = verification
    if (rangesUrl === null) continue
    const known = inUse.get(rangesUrl)
    // If an agent has the newest list itself, the entry is named after it.
    if (known === undefined || (ranges !== null && ranges === newest.get(rangesUrl)))
      inUse.set(rangesUrl, { url: rangesUrl, agent: id, published: newest.get(rangesUrl) ?? null })
  }
  return [...inUse.values()]
}

function newestByUrl(list: readonly Software[]): ReadonlyMap<string, PublishedRanges> {
  const newest = new Map<string, PublishedRanges>()
  for (const { kind, verification } of list) {
    const { rangesUrl, ranges } = verification
    if (kind !== 'agent' || rangesUrl === null || ranges === null) continue
    const before = newest.get(rangesUrl)
    if (before === undefined || before.date < ranges.date) newest.set(rangesUrl, ranges)
  }
  return newest
}
