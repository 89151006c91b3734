import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { CorpusRequest, CorpusRow } from '../../classify/known/corpus.ts'
import { type FingerprintType, isFingerprint, type Signature } from '../../classify/known/signature.ts'
import type { Software, SoftwareId } from '../../classify/known/software.ts'
import { ConfigFault, type Problem } from '../../config/source.ts'
import { Fault } from '../../shared/fault.ts'
import { readCorpus } from '../record/corpus-file.ts'
import { hasSignatureLines } from '../../runtime/signatures/signature-lines.ts'
import { unreadable } from '../../terminal/unreadable.ts'

/** Measurements of known software, and names of unknown clients. */
export class Measurements {
  readonly #signatures = new Map<SoftwareId, Map<string, Signature>>()
  readonly #strangers = new Map<string, number>()
  readonly #known: ReadonlyMap<string, Software>

  constructor(known: readonly Software[]) {
    this.#known = byName(known)
  }

  /** `null` if the name is unknown or ambiguous. */
  software(name: string): Software | null {
    return this.#known.get(name) ?? null
  }

  /** In an order that does not depend on the order of the files. */
  of(id: SoftwareId): readonly Signature[] {
    const signatures = [...(this.#signatures.get(id) ?? [])]
    const rank = ({ type }: Signature) => ORDER.indexOf(type)
    return signatures
      .sort(([keyA, a], [keyB, b]) => {
        return rank(a) - rank(b) || b.observations - a.observations || (keyA < keyB ? -1 : 1)
      })
      .map(([, signature]) => signature)
  }

  /** Number of connections of unknown clients, by name. */
  get strangers(): ReadonlyMap<string, number> {
    return this.#strangers
  }

  /** Sums the observations of one pattern from one source. False if there are too many patterns. */
  add(id: SoftwareId, signature: Signature): boolean {
    let signatures = this.#signatures.get(id)
    if (signatures === undefined) {
      signatures = new Map()
      this.#signatures.set(id, signatures)
    }
    const key = signatureKey(signature)
    const before = signatures.get(key)
    if (before === undefined && signatures.size === SIGNATURES_MAX) return false
    const observations = signature.observations + (before?.observations ?? 0)
    const date = before !== undefined && before.date > signature.date ? before.date : signature.date
    signatures.set(key, { ...signature, observations, date })
    return true
  }

  addStranger(name: string): void {
    const count = this.#strangers.get(name)
    if (count !== undefined || this.#strangers.size < STRANGERS_MAX)
      this.#strangers.set(name, (count ?? 0) + 1)
  }
}

/** Two signatures of one Software with the same key are repeated measurements. */
export function signatureKey(signature: Signature): string {
  const { date: _date, observations: _observations, ...pattern } = signature
  return JSON.stringify(Object.entries(pattern).sort(([a], [b]) => (a < b ? -1 : 1)))
}

interface CorpusReading {
  /** The source to record in signatures. */
  readonly source: string
  /** Whether to compute JA4H. */
  readonly ja4plus: boolean
}

/**
 * Adds the measurements in a file of recorded connections, one a line. Throws a ConfigFault that names each
 * invalid line.
 */
export async function measureCorpus(file: string, reading: CorpusReading, into: Measurements): Promise<void> {
  const problems: Problem[] = []
  const refuse = (line: number, { message }: Fault) => {
    for (const what of message.split('\n')) problems.push({ where: `${file}:${line}`, what })
    if (problems.length >= PROBLEMS_MAX) throw new ConfigFault(problems, 'CORPUS_INVALID')
  }
  try {
    // For rows without a time. The day of the import would differ with every import.
    const day = (await stat(file)).mtime.toISOString().slice(0, 10)
    for await (const { number, row } of readCorpus(createReadStream(file), refuse, reading.ja4plus)) {
      const fault = measure(row, day, reading.source, into)
      if (fault !== null) refuse(number, fault)
    }
  } catch (error) {
    if (error instanceof Fault) throw error
    problems.push({ where: file, what: unreadable(error).message })
  }
  if (problems.length > 0) throw new ConfigFault(problems, 'CORPUS_INVALID')
}

export async function isCorpus(file: string): Promise<boolean> {
  return !/\.ya?ml$/i.test(basename(file)) && !(await hasSignatureLines(file))
}

function measure(row: CorpusRow, day: string, source: string, into: Measurements): Fault | null {
  const software = into.software(row.client)
  if (software === null) {
    into.addStranger(row.client)
    return null
  }
  const date = row.ts !== null && DAY_AND_TIME.test(row.ts) ? row.ts.slice(0, 10) : day
  for (const pattern of patternsOf(row, software)) {
    if (into.add(software.id, { ...pattern, source, date, observations: 1 })) continue
    const what = `"${software.id}" has more than ${SIGNATURES_MAX} different values: this is not one program`
    return new Fault('CORPUS_INVALID', what)
  }
  return null
}

type Pattern =
  | Pick<Signature & { type: FingerprintType }, 'type' | 'value' | 'isDecisive'>
  | HeaderOrderPattern
type HeaderOrderPattern = Pick<Signature & { type: 'header-order' }, 'type' | 'protocol' | 'names'>

function patternsOf({ print, requests }: CorpusRow, { kind }: Software): readonly Pattern[] {
  const patterns: Pattern[] = []
  const add = (type: FingerprintType, value: string | null) => {
    // A client can produce a fingerprint for which no signature can be written.
    if (value !== null && isFingerprint(type, value)) patterns.push({ type, value, isDecisive: false })
  }
  add('ja4', print.ja4)
  add('stable', print.stable)
  add('http2', print.http2)
  for (const request of requests) {
    // The last two parts depend on cookies, which belong to the site and the visitor.
    if (request.ja4h !== null) add('ja4h', `${request.ja4h.split('_', 2).join('_')}_*_*`)
    const order = kind === 'browser' && isNavigation(request) ? headerOrder(request) : null
    if (order !== null) patterns.push(order)
  }
  return patterns
}

/** Whether a browser requests a page; older browsers show it only by their Accept header. */
function isNavigation({ head }: CorpusRequest): boolean {
  if (head.method !== 'GET') return false
  const mode = headerOf(head.rawHeaders, 'sec-fetch-mode')
  return mode === null
    ? headerOf(head.rawHeaders, 'accept')?.startsWith('text/html') === true
    : mode === 'navigate'
}

function headerOrder({ head }: CorpusRequest): HeaderOrderPattern | null {
  const all = head.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase())
  const names = [...new Set(all)].filter((name) => !name.startsWith(':'))
  const isPlain = names.every((name) => TOKEN.test(name))
  return names.length === 0 || !isPlain
    ? null
    : { type: 'header-order', protocol: head.version === '20' ? 'h2' : 'h1', names }
}

function headerOf(rawHeaders: readonly string[], name: string): string | null {
  const at = rawHeaders.findIndex((each, index) => index % 2 === 0 && each.toLowerCase() === name)
  return at === -1 ? null : rawHeaders[at + 1]!
}

/** Ids take precedence; ambiguous aliases are dropped. */
function byName(list: readonly Software[]): ReadonlyMap<string, Software> {
  const byAlias = new Map<string, Software>()
  const shared = new Set<string>()
  for (const software of list)
    for (const alias of new Set(software.aliases)) {
      if (byAlias.has(alias)) shared.add(alias)
      byAlias.set(alias, software)
    }
  for (const alias of shared) byAlias.delete(alias)
  return new Map([...byAlias, ...list.map((software) => [software.id, software] as const)])
}

const ORDER: readonly Signature['type'][] = [
  ...(['user-agent', 'header', 'ja4', 'stable', 'ja4s', 'ja4x', 'http2', 'ja4h', 'header-order'] as const),
]
/** For one Software and one import. The most varied browsers have some hundred. */
const SIGNATURES_MAX = 1000
const STRANGERS_MAX = 1000
/** With more invalid lines, the file is probably the wrong one. */
const PROBLEMS_MAX = 100
const DAY_AND_TIME = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T/
const TOKEN = /^[!#$%&'*+.^_`|~\w-]{1,256}$/
