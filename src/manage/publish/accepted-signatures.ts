import { setImmediate as turn } from 'node:timers/promises'
import { DAY_MS } from '../../classify/known/calendar.ts'
import { isDecidable } from '../../classify/known/signature.ts'
import { parseSignatureLine } from '../../classify/known/signature-line.ts'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import type { SignatureRow, SoftwareRow } from '../../store/catalogue/catalogue.ts'
import type { Store } from '../../store/store.ts'

/**
 * Signatures that the API has accepted, and the software that was made for them, as a long list of signatures has them:
 * from the database, and while that is away, as they were when it was last there.
 */
export class AcceptedSignatures {
  readonly #log: Log
  #store: Store | null = null
  #lines = ''
  /** Of those that were read last. */
  #mark = ''

  constructor(log: Log) {
    this.#log = log
  }

  /** From now on they are in this one. Whether there are any. */
  async attach(store: Store): Promise<boolean> {
    this.#store = store
    return (await this.load()) !== ''
  }

  /** The database has others: somebody changed them and could not tell, or they could not be read when he did. */
  async isBehind(): Promise<boolean> {
    return this.#store !== null && (await this.#store.catalogue.acceptedMark()) !== this.#mark
  }

  /** A line of JSON each. Never rejects. */
  async load(): Promise<string> {
    if (this.#store === null) return this.#lines
    try {
      // Before they are read: what changes meanwhile is read again.
      const mark = await this.#store.catalogue.acceptedMark()
      this.#lines = await this.#read(this.#store)
      this.#mark = mark
    } catch (error) {
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

  /** What cannot be read would keep everything else from being used. */
  #sane(line: unknown): readonly string[] {
    try {
      parseSignatureLine(line)
      return [JSON.stringify(line)]
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      this.#log.warn('an accepted signature is no good and is left out', { problem: error.message })
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

/** A millisecond or two. */
const PAGE = 200
