import { createHash } from 'node:crypto'
import { parseSoftwareList, type Software } from '../classify/known/software.ts'
import { softwareDocument } from '../classify/known/software-document.ts'
import { version } from '../shared/package-files.ts'

/** The content of a signature file as JSON, which is read in a tenth of the time that YAML takes. */
export interface ListCopy {
  /** SHA-256 of the program's version and the file, in hexadecimal. */
  readonly of: string
  /** JSON. */
  readonly list: string
  /** The place of each id in the file: `:12:5`. */
  readonly places: readonly string[]
}

export interface CopiedList {
  readonly list: readonly Software[]
  readonly places: readonly string[]
}

/** Copies of valid signature lists, so that a process can reuse what another has parsed. */
export class ListCopies {
  readonly #before: Map<string, ListCopy>
  readonly #used = new Map<string, ListCopy>()
  #length = 0
  /** Lists that were parsed because there was no copy. */
  parsed = 0

  constructor(before: readonly ListCopy[] = []) {
    this.#before = new Map(before.map((copy) => [copy.of, copy]))
  }

  /** Only the copies of files that were read through this object. */
  get used(): readonly ListCopy[] {
    return [...this.#used.values()]
  }

  addBefore(copies: readonly ListCopy[]): void {
    for (const copy of copies) this.#before.set(copy.of, copy)
  }

  /** `null`: there is no copy for this text, or it is invalid. */
  find(text: string): CopiedList | null {
    const copy = this.#before.get(keyOf(text))
    if (copy === undefined) return null
    try {
      const list = parseSoftwareList(JSON.parse(copy.list))
      if (list.length !== copy.places.length) return null
      this.#keep(copy)
      return { list, places: copy.places }
    } catch {
      return null
    }
  }

  add(text: string, { list, places }: CopiedList): void {
    this.parsed++
    this.#keep({ of: keyOf(text), list: JSON.stringify(list.map(softwareDocument)), places })
  }

  #keep(copy: ListCopy): void {
    if (this.#length + copy.list.length > LENGTH_MAX) return
    this.#length += copy.list.length
    this.#used.set(copy.of, copy)
  }
}

export function isListCopy(value: unknown): value is ListCopy {
  if (typeof value !== 'object' || value === null) return false
  const { of, list, places } = value as Partial<Record<keyof ListCopy, unknown>>
  if (typeof of !== 'string' || typeof list !== 'string' || !Array.isArray(places)) return false
  return places.every((place) => typeof place === 'string')
}

function keyOf(text: string): string {
  return createHash('sha256').update(`${VERSION}\n`).update(text).digest('hex')
}

const VERSION = version()
/**
 * Characters. They stay in memory and are sent to another process in one message,
 * which takes some milliseconds.
 */
const LENGTH_MAX = 4 * 1024 * 1024
