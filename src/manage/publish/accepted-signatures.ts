import { setImmediate as turn } from 'node:timers/promises'
import { DAY_MS } from '../../classify/known/calendar.ts'
import { isDecidable } from '../../classify/known/signature.ts'
import { parseSignatureLine } from '../../classify/known/signature-line.ts'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import type { SignatureRow, SoftwareRow } from '../../store/catalogue/catalogue.ts'
import type { Store } from '../../store/store.ts'

/**
 * Signatures accepted through the API and the software created for them, in the format of a signature list.
 * They come from the database; while it is unavailable, the ones that were read last are used.
 */
export class AcceptedSignatures {
  readonly #log: Log
  #store: Store | null = null
  #lines = ''
  /** Identifies the state that was read last. */
  #mark = ''

  constructor(log: Log) {
    this.#log = log
  }

  /** Reads from this database from now on. Returns whether it has any accepted signatures. */
  async attach(store: Store): Promise<boolean> {
    this.#store = store
    return (await this.load()) !== ''
  }

  /** The database is about to close. */
  close(): void {
    this.#store = null
  }

  /** Whether the database differs: another process changed it unnoticed, or an earlier read failed. */
  async isBehind(): Promise<boolean> {
    return this.#store !== null && (await this.#store.catalogue.acceptedMark()) !== this.#mark
  }

  /** One JSON object per line. Never rejects. */
  async load(): Promise<string> {
    if (this.#store === null) return this.#lines
    try {
      // Read before the rows, so that a change in the meantime is detected later.
      const mark = await this.#store.catalogue.acceptedMark()
      this.#lines = await this.#read(this.#store)
      this.#mark = mark
    } catch (error) {
      if (this.#store !== null)
        this.#log.error('accepted signatures cannot be read; those read before stay in use', {
          error: error as Error,
        })
    }
    return this.#lines
  }

  async #read({ catalogue }: Store): Promise<string> {
    const lines: string[] = []
    let id = ''
    for (
      let some = await catalogue.madeHere(id, PAGE);
      some.length > 0;
      some = await catalogue.madeHere(id, PAGE)
    ) {
      lines.push(...some.flatMap((row) => this.#sane(softwareLine(row))))
      id = some.at(-1)!.id
      await turn()
    }
    let last: SignatureRow | null = null
    for (;;) {
      const key = last === null ? null : { ...last, softwareId: last.software_id }
      const some: readonly SignatureRow[] = await catalogue.accepted(key, PAGE)
      if (some.length === 0) return lines.join('\n')
      lines.push(...some.flatMap((row) => this.#sane(signatureLine(row))))
      last = some.at(-1)!
      await turn()
    }
  }

  /** Drops lines that cannot be parsed: a single one would make the whole list unusable. */
  #sane(line: unknown): readonly string[] {
    try {
      parseSignatureLine(line)
      return [JSON.stringify(line)]
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      this.#log.warn('an accepted signature is invalid and is left out', { problem: error.message })
      return []
    }
  }
}

function softwareLine({ document }: SoftwareRow): unknown {
  try {
    return JSON.parse(document)
  } catch {
    return null
  }
}

function signatureLine({ type, value, software_id, provenance, first_seen_ms, observations }: SignatureRow) {
  const date = new Date(Math.floor(first_seen_ms / DAY_MS) * DAY_MS).toISOString().slice(0, 10)
  const decisive = isDecidable(type)
  return {
    software: software_id,
    [type]: value,
    decisive,
    source: provenance || 'accepted',
    date,
    observations,
  }
}

/** Takes one or two milliseconds. */
const PAGE = 200
