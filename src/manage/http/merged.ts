/** What comes from any of them, as it comes, until one of them has ended. */
export async function* merged<Value>(
  sources: readonly AsyncGenerator<Value, void, undefined>[],
): AsyncGenerator<Value, void, undefined> {
  const next = async (source: AsyncGenerator<Value, void, undefined>) => ({
    source,
    came: await source.next(),
  })
  const awaited = new Map(sources.map((source) => [source, next(source)]))
  try {
    while (awaited.size > 0) {
      const { source, came } = await Promise.race(awaited.values())
      if (came.done === true) return
      yield came.value
      awaited.set(source, next(source))
    }
  } finally {
    // Nobody waits for what comes too late, nor for what fails then.
    for (const late of awaited.values()) late.catch(() => undefined)
    for (const source of sources) source.return().catch(() => undefined)
  }
}
