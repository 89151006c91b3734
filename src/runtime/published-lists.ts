import type { PublishedRanges } from '../classify/known/published-ranges.ts'
import type { Software } from '../classify/known/software.ts'
import type { RangesInUse } from '../identity/address/ranges-refresher.ts'
import type { FetchedRanges } from '../identity/address/ranges-store.ts'
import { type SignatureSet, softwareOf } from '../plane/signature-set.ts'

/**
 * The same software with the lists that were fetched, each in the place of an older one with its URL. Of a list that is
 * said to lack addresses it is not known that the fetched one has all of them.
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
    // Who has none has that of another with the same URL.
    if (isOutdated || (ranges === null && (before !== undefined || given.has(rangesUrl)))) return software
    given.add(rangesUrl)
    const isPartial = ranges?.isPartial ?? false
    return { ...software, verification: { ...verification, ranges: { ...published, isPartial } } }
  })
}

/** The lists that agents are judged by who have one that can be fetched. */
export async function rangesInUse(set: SignatureSet): Promise<readonly RangesInUse[]> {
  const list = await softwareOf(set, (piece) => piece.includes('"ranges_url"'))
  const agents = list.filter(({ kind }) => kind === 'agent')
  const newest = newestByUrl(agents)
  const inUse = new Map<string, RangesInUse>()
  for (const { id, verification } of agents) {
    const { rangesUrl, ranges } = verification
    if (rangesUrl === null) continue
    const known = inUse.get(rangesUrl)
    // Named after one that has it itself, where there is one.
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
