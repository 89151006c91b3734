import inspector from 'node:inspector'

/**
 * V8 counts blocks in functions that are compiled while this is on: it has to be loaded before anything runs. In its
 * binary mode, for exact counts would keep it from optimizing; what is new in code already optimized can be missed.
 */
const session = new inspector.Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: false, detailed: true })

/** Which blocks of src/ were executed since this was made. */
export class Coverage {
  /** For each function a byte for each of its characters: whether it was executed. */
  readonly #seen = new Map<string, Uint8Array>()

  constructor() {
    take()
  }

  /** Whether anything was executed since the last call that never was before; `remember` says whether it was now. */
  isNew(remember: boolean): boolean {
    let isNew = false
    for (const { url, functions } of take()) {
      if (!url.includes('/src/')) continue
      for (const { ranges } of functions) if (this.#isNewIn(url, ranges, remember)) isNew = true
    }
    return isNew
  }

  /** A function's first range is the whole of it, and each that follows says otherwise for a part. */
  #isNewIn(url: string, ranges: readonly inspector.Profiler.CoverageRange[], remember: boolean): boolean {
    const { startOffset: start, endOffset: end } = ranges[0]!
    const key = `${url}:${start}:${end}`
    const executed = new Uint8Array(end - start)
    for (const { startOffset, endOffset, count } of ranges)
      executed.fill(Math.min(count, 1), startOffset - start, endOffset - start)
    const seen = this.#seen.get(key) ?? new Uint8Array(end - start)
    const isNew = executed.some((is, at) => is > seen[at]!)
    if (isNew && remember) {
      for (let at = 0; at < seen.length; at++) seen[at]! |= executed[at]!
      this.#seen.set(key, seen)
    }
    return isNew
  }
}

/** What was executed since the last call. Within one thread the answer comes before `post` returns. */
function take(): readonly inspector.Profiler.ScriptCoverage[] {
  let taken: readonly inspector.Profiler.ScriptCoverage[] = []
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    if (error !== null) throw error
    taken = result
  })
  return taken
}
