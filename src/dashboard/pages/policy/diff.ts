export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed'
  readonly text: string
}

/** The smallest set of line changes that turns `before` into `after`. */
export function diffOf(before: string, after: string): readonly DiffLine[] {
  const [old, fresh] = [before.split('\n'), after.split('\n')]
  const start = commonStart(old, fresh)
  const end = commonEnd(old, fresh, start)
  const same = (lines: readonly string[]) => lines.map((text) => ({ kind: 'same' as const, text }))
  return [
    ...same(old.slice(0, start)),
    ...changed(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end)),
    ...same(old.slice(old.length - end)),
  ]
}

/** Changed lines with some context; `null` stands for omitted lines. */
export function shortened(lines: readonly DiffLine[], around = 3): readonly (DiffLine | null)[] {
  const isNear = lines.map((_, at) =>
    lines.slice(Math.max(0, at - around), at + around + 1).some(({ kind }) => kind !== 'same'),
  )
  return lines.flatMap((line, at): (DiffLine | null)[] => {
    if (isNear[at]) return [line]
    return at === 0 || isNear[at - 1] ? [null] : []
  })
}

function commonStart(one: readonly string[], other: readonly string[]): number {
  let length = 0
  while (length < one.length && length < other.length && one[length] === other[length]) length++
  return length
}

function commonEnd(one: readonly string[], other: readonly string[], start: number): number {
  let length = 0
  while (
    length < one.length - start &&
    length < other.length - start &&
    one[one.length - 1 - length] === other[other.length - 1 - length]
  )
    length++
  return length
}

/** Longest common subsequence. If the texts are too long for that, everything counts as changed. */
function changed(old: readonly string[], fresh: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: 'removed', text })
  const added = (text: string): DiffLine => ({ kind: 'added', text })
  if (old.length * fresh.length > CELLS_MAX) return [...old.map(removed), ...fresh.map(added)]
  const width = fresh.length + 1
  const lengths = new Uint32Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = fresh.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        old[i] === fresh[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!)
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < old.length && j < fresh.length) {
    if (old[i] === fresh[j]) {
      lines.push({ kind: 'same', text: old[i]! })
      i++
      j++
    } else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) lines.push(removed(old[i++]!))
    else lines.push(added(fresh[j++]!))
  }
  return [...lines, ...old.slice(i).map(removed), ...fresh.slice(j).map(added)]
}

const CELLS_MAX = 4_000_000
