import { createReadStream } from 'node:fs'
import {
  isFingerprintLine,
  parseSignatureLine,
  type SignatureLine,
} from '../../classify/known/signature-line.ts'
import type { FingerprintSignature } from '../../classify/known/signature.ts'
import type { Software } from '../../classify/known/software.ts'
import type { Problem } from '../../config/source.ts'
import { DocumentFault, problemText, shown } from '../../shared/problem.ts'
import { type Line, lines } from '../../terminal/lines.ts'
import { unreadable } from '../../terminal/unreadable.ts'

/** Receives the entries of long lists in order. */
export interface LineSink {
  software(software: Software, path: string): void
  /** Returns false if the id is unknown. */
  fingerprint(of: string, signature: FingerprintSignature, path: string): boolean
}

/** Whether it is a long list: lines of JSON, read one by one, so that a million need not fit in memory. */
export function isLongList(path: string): boolean {
  return path.endsWith('.jsonl')
}

/** Whether the first line is a signature. Recorded connections are lines of JSON too, in another format. */
export async function hasSignatureLines(path: string): Promise<boolean> {
  if (!isLongList(path)) return false
  try {
    for await (const batch of lines(bounded(path), LINE_BYTES_MAX)) {
      const first = batch.find(({ text }) => text !== null && text.trim() !== '')?.text
      if (typeof first !== 'string') continue
      const value: unknown = JSON.parse(first)
      return isFingerprintLine(value) || (typeof value === 'object' && value !== null && 'kind' in value)
    }
  } catch {
    // The caller's own attempt to read the file reports the error.
  }
  return false
}

/**
 * Returns the problems, at most PROBLEMS_MAX. `places`: where ids of earlier files
 * are; those of this file are added.
 */
export async function readSignatureLines(
  path: string,
  places: Map<string, string>,
  sink: LineSink,
): Promise<readonly Problem[]> {
  const problems: Problem[] = []
  let number = 0
  try {
    for await (const batch of lines(bounded(path), LINE_BYTES_MAX)) {
      for (const line of batch) {
        const where = `${path}:${++number}`
        const wrong = take(line, { where, path, places, sink })
        if (wrong !== null) problems.push({ where, what: wrong })
        if (problems.length < PROBLEMS_MAX) continue
        problems.push({ where: path, what: `is read no further: ${PROBLEMS_MAX} problems` })
        return problems
      }
    }
  } catch (error) {
    problems.push({ where: path, what: error instanceof TooLong ? error.message : unreadable(error).message })
  }
  return problems
}

/** Whether to keep a fingerprint of a long list. There may be a million that no command needs. */
export type Keeps = (software: Software, signature: FingerprintSignature) => boolean

/**
 * Keeps the content of long lists as Software, for commands that show it. Fingerprints of built-in
 * software become an entry of their own.
 */
export class LineObjects implements LineSink {
  readonly #files = new Map<string, Map<string, Software>>()
  readonly #added = new Map<string, FingerprintSignature[]>()
  readonly #known: Map<string, Map<string, Software>>
  readonly #ours: ReadonlyMap<string, Software>
  readonly #keeps: Keeps

  /** `ours`: the built-in software. */
  constructor(files: readonly ListFile[], ours: readonly Software[], keeps: Keeps) {
    this.#keeps = keeps
    this.#known = new Map()
    for (const { path, list } of files) {
      const byId = new Map(list.map((software) => [software.id as string, software]))
      this.#files.set(path, byId)
      for (const id of byId.keys()) this.#known.set(id, byId)
    }
    this.#ours = new Map(ours.map((software) => [software.id, software]))
  }

  software(software: Software, path: string): void {
    const file = this.#fileOf(path)
    file.set(software.id, software)
    this.#known.set(software.id, file)
  }

  fingerprint(of: string, signature: FingerprintSignature, path: string): boolean {
    const ours = this.#ours.get(of)
    if (!this.#known.has(of)) {
      if (ours === undefined) return false
      this.software({ ...ours, signatures: [] }, path)
    }
    if (!this.#keeps(this.#known.get(of)!.get(of)!, signature)) return true
    const added = this.#added.get(of)
    if (added === undefined) this.#added.set(of, [signature])
    else added.push(signature)
    return true
  }

  /** The entries of the file at `path` and of all files before it. */
  list(path: string): readonly Software[] {
    return [...this.#fileOf(path).values()].map((software) => {
      const added = this.#added.get(software.id)
      return added === undefined
        ? software
        : Object.freeze({ ...software, signatures: [...software.signatures, ...added] })
    })
  }

  #fileOf(path: string): Map<string, Software> {
    const file = this.#files.get(path) ?? new Map<string, Software>()
    this.#files.set(path, file)
    return file
  }
}

interface ListFile {
  readonly path: string
  readonly list: readonly Software[]
}

interface LineContext {
  readonly where: string
  readonly path: string
  readonly places: Map<string, string>
  readonly sink: LineSink
}

/** Returns what is wrong with the line, or `null`. */
function take({ text }: Line, { where, path, places, sink }: LineContext): string | null {
  if (text === null) return `is longer than ${LINE_BYTES_MAX} bytes`
  if (text.trim() === '') return null
  if (text.includes(NOT_UTF8)) return 'is not UTF-8'
  const line = parsed(text)
  if (typeof line === 'string') return line
  if (line.kind === 'fingerprint')
    return sink.fingerprint(line.of, line.signature, path)
      ? null
      : `no software has the id ${shown(line.of)}: it stands above its fingerprints, or in another file`
  const { id } = line.software
  const first = places.get(id)
  if (first !== undefined) return `${shown(id)} is taken: it stands at ${first}`
  places.set(id, where)
  sink.software(line.software, path)
  return null
}

function parsed(text: string): SignatureLine | string {
  try {
    return parseSignatureLine(JSON.parse(text))
  } catch (error) {
    if (error instanceof DocumentFault) return error.problems.map(problemText).join('; ')
    // The parser's own message would quote the line.
    if (error instanceof SyntaxError) return 'is not valid JSON'
    throw error
  }
}

/** Reads a file that may be anything, even endless. */
async function* bounded(path: string): AsyncGenerator<Uint8Array> {
  let length = 0
  for await (const chunk of createReadStream(path)) {
    length += chunk.length
    if (length > LIST_BYTES_MAX) throw new TooLong(`is larger than ${LIST_BYTES_MAX} bytes`)
    yield chunk
  }
}

class TooLong extends Error {}

/** Four million lines of 256 bytes, which is more than an index can hold. */
const LIST_BYTES_MAX = 1024 ** 3
/** Enough for software with the longest address ranges and header orders. */
const LINE_BYTES_MAX = 1024 * 1024
const PROBLEMS_MAX = 100
/** The replacement character of invalid UTF-8. */
const NOT_UTF8 = '\ufffd'
