import { setImmediate as turn } from 'node:timers/promises'
import { looksOf, mixesScripts } from '../../../classify/known/name-likeness.ts'
import { plainName } from '../../../classify/known/software.ts'
import type { Store } from '../../../store/store.ts'
import type { NamedSoftware } from '../../../store/catalogue/submissions.ts'
import type { SubmissionFinding } from './findings.ts'

/** All known names, with a check for names that look like one of them. */
export class KnownNames {
  readonly #byName = new Map<string, NamedSoftware>()
  readonly #byLooks = new Map<string, NamedSoftware>()

  /** Reads all names from the database in slices, so that other work continues in between. */
  static async read({ submissions }: Store): Promise<KnownNames> {
    const names = new KnownNames()
    let last = ''
    for (;;) {
      const some = await submissions.namesAfter(last, SLICE)
      for (const { called, software } of some) names.#add(called, software)
      if (some.length < SLICE) return names
      last = some.at(-1)!.called
      await turn()
    }
  }

  /** Finds software by name, whatever the spelling. */
  find(name: string): NamedSoftware | null {
    return this.#byName.get(isAscii(name) ? plainName(name) : name) ?? null
  }

  /** The findings about a name that was submitted for an agent. */
  findingsOf(name: string): readonly SubmissionFinding[] {
    const found = this.find(name)
    if (found !== null) return [knownFinding(found)]
    if (mixesScripts(name)) return [lookAlike('mixes letters of several scripts that look alike')]
    const alike = this.#byLooks.get(looksOf(name))
    if (alike === undefined) return []
    return isAscii(name)
      ? [{ code: 'name_like_known', detail: `${name} looks like ${alike.name} but is a different name` }]
      : [lookAlike(`looks like ${alike.name}, and is written in other letters`)]
  }

  #add(called: string, software: NamedSoftware): void {
    this.#byName.set(isAscii(called) ? plainName(called) : called, software)
    this.#byLooks.set(looksOf(called), software)
  }
}

/** The names in the database, cached for a short time: there are many, and they seldom change. */
export async function namesIn(store: Store, nowMs: number): Promise<KnownNames> {
  const kept = KEPT.get(store)
  if (kept !== undefined && nowMs - kept.atMs < KEPT_MS) return kept.names
  const names = KnownNames.read(store)
  KEPT.set(store, { names, atMs: nowMs })
  // The next caller tries again.
  names.catch(() => KEPT.delete(store))
  return names
}

/** Drops the cache after a change in this process, so that the change is visible at once. */
export function forgetNames(store: Store): void {
  KEPT.delete(store)
}

/** An id for a new agent: its name, reduced to characters that are allowed in a path. */
export function idFor(name: string, digest: string): string {
  const plain = plainName(name.normalize('NFKD').replaceAll(/\p{M}/gu, ''))
    .slice(0, ID_LENGTH_MAX)
    .replaceAll(/^-+|-+$/g, '')
  return /[a-z]/.test(plain) ? plain : `agent-${digest.slice(0, 12)}`
}

function knownFinding({ id, name, kind }: NamedSoftware): SubmissionFinding {
  switch (kind) {
    case 'agent':
      return { code: 'known_agent', detail: `${name} (${id}) is known and would get one more fingerprint` }
    case 'tool':
      return { code: 'name_of_tool', detail: `${name} (${id}) is known as a tool, not as an agent` }
    case 'browser':
      return {
        code: 'name_of_browser',
        detail: `${name} (${id}) is a browser: submissions cannot add fingerprints to browsers`,
      }
  }
}

function lookAlike(detail: string): SubmissionFinding {
  return { code: 'look_alike_name', detail: `the name ${detail}` }
}

function isAscii(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text)
}

const KEPT = new WeakMap<Store, { readonly names: Promise<KnownNames>; readonly atMs: number }>()
const KEPT_MS = 5_000
/** Takes about 3 ms. */
const SLICE = 500
const ID_LENGTH_MAX = 64
