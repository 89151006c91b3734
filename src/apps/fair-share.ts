/**
 * What to keep where there is room for `max`: all of each app that has less than its equal part of the room, and of
 * the other apps as many of each, spread over time. In the order of `all`.
 */
export function fairShare<Item>(
  all: readonly Item[],
  max: number,
  appOf: (item: Item) => string,
): readonly Item[] {
  if (all.length <= max) return all
  const counts = countsOf(all, appOf)
  const part = partOf(counts, max)
  const met = new Map<string, number>()
  return all.filter((each) => {
    const app = appOf(each)
    const count = counts.get(app)!
    if (count <= part) return true
    const before = met.get(app) ?? 0
    met.set(app, before + 1)
    return Math.floor(((before + 1) * part) / count) > Math.floor((before * part) / count)
  })
}

function countsOf<Item>(items: readonly Item[], appOf: (item: Item) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const each of items) counts.set(appOf(each), (counts.get(appOf(each)) ?? 0) + 1)
  return counts
}

/** How many an app may keep, if those that have less leave the rest to the others. At least one. */
function partOf(counts: ReadonlyMap<string, number>, max: number): number {
  let [room, apps] = [max, counts.size]
  for (const count of [...counts.values()].sort((one, other) => one - other)) {
    if (count * apps > room) break
    room -= count
    apps--
  }
  return Math.max(1, Math.floor(room / apps))
}

/** The share of the items of each app that was kept. */
export function keptShares<Item>(
  all: readonly Item[],
  kept: readonly Item[],
  appOf: (item: Item) => string,
): (app: string) => number {
  const before = countsOf(all, appOf)
  const after = countsOf(kept, appOf)
  return (app) => (after.get(app) ?? 0) / before.get(app)!
}
