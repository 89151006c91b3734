/**
 * What the path of each rule starts with, as hashes. It excludes the rules of other paths without reading them. With many apps,
 * the rules are not in the caches of the processor, but the hashes of 200 rules are 1,600 bytes in one piece.
 */
export class PathStarts {
  /** For each rule, the length and the hash of its start. */
  readonly #starts: Uint32Array

  /** `null`: too few rules have one. */
  static of(starts: readonly string[]): PathStarts | null {
    return starts.filter((start) => start !== '').length < STARTS_MIN ? null : new PathStarts(starts)
  }

  private constructor(starts: readonly string[]) {
    const hashes = emptyHashes()
    this.#starts = Uint32Array.from(
      starts.flatMap((start) => {
        hashStarts(start, start.length, hashes)
        return [start.length, hashes[start.length]!]
      }),
    )
  }

  /** Whether the rule cannot hold for a path with these hashes. Different starts can have equal hashes, so `false` says nothing. */
  excludes(rule: number, hashes: Uint32Array): boolean {
    return hashes[this.#starts[rule * 2]!] !== this.#starts[rule * 2 + 1]
  }
}

/** What the paths of a condition `path` start with. Invalid ones were refused before. `undefined`: no such condition. */
export function pathStart(takes: unknown): string {
  const patterns = [takes].flat()
  // A pattern with an encoding has two forms.
  if (!patterns.every((each) => typeof each === 'string' && PLAIN.test(each))) return ''
  const [first = '', ...others] = patterns.map((each) => String(each).split('*', 1)[0]!)
  let start = first.slice(0, START_LENGTH_MAX)
  for (const each of others) while (!each.startsWith(start)) start = start.slice(0, -1)
  return start
}

export function emptyHashes(): Uint32Array {
  return new Uint32Array(START_LENGTH_MAX + 1)
}

/** Writes the hash (FNV-1a) of each start of the text, by its length. What stands behind them stays as it is. */
export function hashStarts(text: string, end: number, hashes: Uint32Array): void {
  const last = Math.min(end, START_LENGTH_MAX)
  let hash = OFFSET
  hashes[0] = hash
  for (let at = 0; at < last; ) {
    hash = Math.imul(hash ^ text.charCodeAt(at), PRIME)
    hashes[++at] = hash
  }
}

/** Longer than the distinguishing part of most paths. */
const START_LENGTH_MAX = 64
/** Hashing a path takes as long as trying a few rules. */
const STARTS_MIN = 8
/** ASCII without encodings. */
const PLAIN = /^[!-$&-~]*$/
const OFFSET = 0x811c9dc5
const PRIME = 0x01000193
