/** ` (did you mean "analyze"?)` if a known word is similar to the typed one, else an empty string. */
export function didYouMean(typed: string, known: readonly string[]): string {
  if (typed.length > TYPED_LENGTH_MAX) return ''
  const ranked = known
    .map((word) => ({ word, distance: word.startsWith(typed) ? 0 : editDistance(typed, word) }))
    .sort((a, b) => a.distance - b.distance || a.word.length - b.word.length)
  const nearest = ranked[0]
  if (nearest === undefined || nearest.distance > mistakesIn(typed)) return ''
  return ` (did you mean "${nearest.word}"?)`
}

/** The number of typing errors for which a suggestion is still plausible: one in three letters. */
function mistakesIn(typed: string): number {
  return Math.max(1, Math.floor(typed.length / 3))
}

/** Number of letters to add, drop, change or swap with their neighbour (optimal string alignment). */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1]
      const swapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      current[column] = Math.min(
        last[column]! + 1,
        current[column - 1]! + 1,
        last[column - 1]! + (same ? 0 : 1),
        swapped ? beforeLast[column - 2]! + 1 : Number.POSITIVE_INFINITY,
      )
    }
    beforeLast = last
    last = current
  }
  return last[to.length]!
}

/** Longer input is not a mistyped word, and comparing it takes long. */
const TYPED_LENGTH_MAX = 64
