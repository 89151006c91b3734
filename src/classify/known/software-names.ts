import { namesOf, plainName, type Software } from './software.ts'

/** Maps names that people write to Software: one index for policies, filters and tools. Never changed. */
export class SoftwareNames {
  readonly #byName: ReadonlyMap<string, Software>
  readonly #shared: ReadonlyMap<string, readonly Software[]>

  private constructor(
    byName: ReadonlyMap<string, Software>,
    shared: ReadonlyMap<string, readonly Software[]>,
  ) {
    this.#byName = byName
    this.#shared = shared
  }

  static of(list: readonly Software[]): SoftwareNames {
    const compiling = SoftwareNames.compiling(list)
    for (;;) {
      const step = compiling.next()
      if (step.done) return step.value
    }
  }

  /** Yields in between. */
  static *compiling(list: readonly Software[]): Generator<undefined, SoftwareNames> {
    const byName = new Map<string, Software>()
    const shared = new Map<string, Software[]>()
    const ids = new Set<string>(list.map(({ id }) => id))
    const names: (readonly string[])[] = []
    for (const software of list) if (names.push(allNames(software)) % SOFTWARE_AT_ONCE === 0) yield
    let count = 0
    for (const [name, software] of rankedNames(list, names)) {
      if (++count % NAMES_AT_ONCE === 0) yield
      const owner = byName.get(name)
      if (owner === undefined) byName.set(name, software)
      else if (owner !== software && !ids.has(name)) {
        const sharing = shared.get(name) ?? [owner]
        if (!sharing.includes(software)) sharing.push(software)
        shared.set(name, sharing)
      }
    }
    return new SoftwareNames(byName, shared)
  }

  /** Finds by id, then by a name or alias as written, then in any spelling. */
  find(name: string): Software | null {
    return this.#byName.get(name) ?? this.#byName.get(plainName(name)) ?? null
  }

  /**
   * All software that shares a name which is not an id; `find` returns the first. Empty if only one has it,
   * or none.
   */
  sharing(name: string): readonly Software[] {
    const spelling = spellings(name).find((each) => this.#byName.has(each))
    return (spelling === undefined ? undefined : this.#shared.get(spelling)) ?? NONE
  }

  /** Every name, for suggestions. */
  get all(): Iterable<string> {
    return this.#byName.keys()
  }
}

/** The spellings under which a name is looked up, in this order: as written, then normalized. */
export function spellings(name: string): readonly string[] {
  const plain = plainName(name)
  return plain === name ? [name] : [name, plain]
}

/** The names that software is found by: its id, name and aliases as written, then normalized. */
export function allNames(software: Software): readonly string[] {
  const names = namesOf(software).map(storable)
  return [...new Set([...names, ...names.map(plainName)])].filter(({ length }) => length <= NAME_LENGTH_MAX)
}

/**
 * All names of a list with their owners. If a name has several owners, the first is meant: the software with
 * this id, then the software that has the name earliest among its own names.
 */
export function* rankedNames(
  list: readonly Software[],
  names: readonly (readonly string[])[] = list.map(allNames),
): Generator<readonly [string, Software]> {
  for (const software of list) yield [software.id, software]
  const longest = names.reduce((most, { length }) => Math.max(most, length), 0)
  for (let rank = 0; rank < longest; rank++)
    for (let i = 0; i < list.length; i++) {
      const name = names[i]![rank]
      if (name !== undefined) yield [name, list[i]!]
    }
}

/** Removes NUL, which PostgreSQL rejects, and replaces lone surrogates, which neither database keeps. */
export function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}

const NONE: readonly Software[] = []
/** Longer names are never looked up, and PostgreSQL cannot index them. */
const NAME_LENGTH_MAX = 256
const SOFTWARE_AT_ONCE = 200
const NAMES_AT_ONCE = 1_000
