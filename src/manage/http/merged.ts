/** Yields values from all sources as they arrive. Ends when any one source ends. */
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
    // Ignore late values and late failures.
    for (const late of awaited.values()) late.catch(() => undefined)
    for (const source of sources) source.return().catch(() => undefined)
  }
}
