import { dayNumber, DAY_MS } from '../../classify/known/calendar.ts'
import { confidenceOf } from '../../classify/verdict/confidence.ts'
import { JA4_TYPES, type Ja4Type, partsOfFingerprint } from '../../classify/known/fingerprint-form.ts'
import type { FingerprintSignature, FingerprintType, Signature } from '../../classify/known/signature.ts'
import type { Software } from '../../classify/known/software.ts'
import { rankedNames, storable } from '../../classify/known/software-names.ts'
import { type SignatureRow, type SoftwareRow, softwareRow } from '../../store/catalogue/catalogue.ts'
import { type CatalogueRows, compareBytes } from '../../store/catalogue/catalogue-merge.ts'
import type { SoftwareNameTable } from '../../store/engine/tables/catalogue.ts'
import { readSources, type SignatureSources, type SourceSink } from './signature-content.ts'

/** Everything in the files as rows of the catalogue's tables. Throws a ConfigFault with all problems. */
export async function catalogueRows(sources: Omit<SignatureSources, 'weightsFile'>): Promise<CatalogueRows> {
  const rows = new Rows()
  await readSources(sources, rows)
  return rows.whole()
}

type Origin = Parameters<SourceSink['begin']>[0]

/** Keeps one string per fingerprint, which is enough to sort a million of them. */
class Rows implements SourceSink {
  readonly #software = new Map<string, { readonly software: Software; readonly origin: Origin }>()
  readonly #lines: string[] = []
  readonly #provenances = new Map<string, number>()
  #origin: Origin = 'builtin'
  #newestDay = 0

  begin(origin: Origin): void {
    this.#origin = origin
  }

  software(software: Software): void {
    for (const { date } of software.signatures)
      this.#newestDay = Math.max(this.#newestDay, dayNumber(date) ?? 0)
    this.#software.set(software.id, { software, origin: this.#origin })
  }

  fingerprint(of: string, signature: FingerprintSignature): boolean {
    if (!this.#software.has(of)) return false
    if (this.#origin !== 'api') this.#add(of, signature)
    return true
  }

  whole(): CatalogueRows {
    const known = [...this.#software.values()].filter(({ origin }) => origin !== 'api')
    for (const { software } of known)
      for (const signature of software.signatures)
        if (isFingerprint(signature)) this.#add(software.id, signature)
    const lines = this.#lines.sort()
    const provenances = [...this.#provenances.keys()]
    return {
      software: known
        .map(({ software, origin }) => storedSoftware(software, origin, this.#newestDay))
        .sort((one, other) => compareBytes(one.id, other.id)),
      names: namesIn(known.map(({ software }) => software)),
      signatures: signaturesIn(lines, provenances),
    }
  }

  #add(of: string, { type, value, source, date, observations, isDecisive }: FingerprintSignature): void {
    if (!isJa4(type)) return
    const provenance = this.#provenances.get(source) ?? this.#provenances.size
    this.#provenances.set(source, provenance)
    const said = [type, value, of, dayNumber(date) ?? 0, observations, provenance, isDecisive ? 1 : 0]
    this.#lines.push(said.join(SEPARATOR))
  }
}

function isFingerprint(signature: Signature): signature is FingerprintSignature {
  return JA4_TYPES.some((type) => type === signature.type)
}

function isJa4(type: FingerprintType): type is Ja4Type {
  return JA4_TYPES.some((each) => each === type)
}

/**
 * The row of a software. Fingerprints have a table of their own. Software without signatures and addresses
 * has no known date, so it gets the newest date of all others as an upper bound.
 */
function storedSoftware(software: Software, origin: Origin, newestDay: number): SoftwareRow {
  const { verification, signatures } = software
  const days = [...signatures.map(({ date }) => date), verification.ranges?.date ?? '']
    .map(dayNumber)
    .filter((day) => day !== null)
  const others = signatures.filter((signature) => !isFingerprint(signature))
  const firstDay = days.reduce((one, other) => Math.min(one, other), newestDay)
  return softwareRow({ ...software, signatures: others }, origin, firstDay * DAY_MS)
}

function namesIn(list: readonly Software[]): readonly SoftwareNameTable[] {
  const byName = new Map<string, string>()
  for (const [name, { id }] of rankedNames(list)) if (!byName.has(name)) byName.set(name, id)
  return [...byName]
    .map(([name, software_id]) => ({ name, software_id }))
    .sort((one, other) => compareBytes(one.name, other.name))
}

/** One row for each fingerprint and owner, merged from all its lines. `lines` are sorted. */
function* signaturesIn(lines: readonly string[], provenances: readonly string[]): Generator<SignatureRow> {
  for (let from = 0; from < lines.length; ) {
    const start = startOf(lines[from]!)
    let to = from + 1
    while (to < lines.length && lines[to]!.startsWith(start)) to++
    yield* ownersIn(lines.slice(from, to), provenances)
    from = to
  }
}

/** The type and fingerprint of a line. */
function startOf(line: string): string {
  return line.slice(0, line.indexOf(SEPARATOR, line.indexOf(SEPARATOR) + 1) + 1)
}

function ownersIn(lines: readonly string[], provenances: readonly string[]): readonly SignatureRow[] {
  const rows = new Map<string, SignatureRow>()
  const most = new Map<string, number>()
  for (const line of lines) {
    const [type, value, of, day, observed, provenance, isDecisive] = line.split(SEPARATOR) as [
      Ja4Type,
      ...string[],
    ]
    const row = rows.get(of!) ?? newRow(type, value!, of!)
    const observations = Number(observed)
    row.observations += observations
    if (isDecisive === '1') row.is_decisive = 1
    row.first_seen_ms = Math.min(row.first_seen_ms, Number(day) * DAY_MS)
    if (observations >= (most.get(of!) ?? 0)) {
      most.set(of!, observations)
      row.provenance = storable(provenances[Number(provenance)]!)
    }
    rows.set(of!, row)
  }
  const all = [...rows.values()]
  const total = all.reduce((sum, { observations }) => sum + observations, 0)
  for (const row of all) row.confidence = confidenceOf(row.observations, total, all.length)
  return all
}

function newRow(type: Ja4Type, value: string, of: string): SignatureRow {
  const [, part_b = '', part_c = ''] = partsOfFingerprint(type, value)
  return {
    type,
    value,
    software_id: of,
    part_b,
    part_c,
    status: 'active',
    source: 'builtin',
    provenance: '',
    first_seen_ms: Number.MAX_SAFE_INTEGER,
    observations: 0,
    confidence: 0,
    is_decisive: 0,
  }
}

/** Sorts before any character of a fingerprint or an id. */
const SEPARATOR = '\t'
