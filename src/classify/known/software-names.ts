import { namesOf, plainName, type Software } from './software.ts'

/** What the names that people write stand for: one index for policies, filters and tools. Never changed. */
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

  /** With pauses in between. */
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

  /** By its id, else by a name or an alias as it is written, else in any spelling. */
  find(name: string): Software | null {
    return this.#byName.get(name) ?? this.#byName.get(plainName(name)) ?? null
  }

  /** All software that goes by a name which is no id: `find` takes the first. Empty where it is one at most. */
  sharing(name: string): readonly Software[] {
    const spelling = spellings(name).find((each) => this.#byName.has(each))
    return (spelling === undefined ? undefined : this.#shared.get(spelling)) ?? NONE
  }

  /** Every name, to find the nearest. */
  get all(): Iterable<string> {
    return this.#byName.keys()
  }
}

/** Under which names a name is looked for, in this order: as it is written, then in any spelling. */
export function spellings(name: string): readonly string[] {
  const plain = plainName(name)
  return plain === name ? [name] : [name, plain]
}

/** Names that software is found by: its id, its name and its aliases as they are written, then in any spelling. */
export function allNames(software: Software): readonly string[] {
  const names = namesOf(software).map(storable)
  return [...new Set([...names, ...names.map(plainName)])].filter(({ length }) => length <= NAME_LENGTH_MAX)
}

/**
 * All names of a list with their owners; of several owners of a name the first is meant: the software whose id it is, then
 * the one that has it earliest among its own names.
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

/** No NUL, which PostgreSQL does not take, and no half of a character, which neither database keeps. */
export function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}

const NONE: readonly Software[] = []
/** Nobody asks by a longer one, and PostgreSQL has no index for it. */
const NAME_LENGTH_MAX = 256
const SOFTWARE_AT_ONCE = 200
const NAMES_AT_ONCE = 1_000
