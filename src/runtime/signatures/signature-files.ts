import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { BUILT_SIGNATURES, SIGNATURES_FOLDER } from '../../shared/package-files.ts'
import { parseSoftwareList, type Software } from '../../classify/known/software.ts'
import { ConfigFault, type Problem, placed, pointerTo, readSource, type Source } from '../../config/source.ts'
import { Fault } from '../../shared/fault.ts'
import { DocumentFault, type DocumentProblem, shown } from '../../shared/problem.ts'
import { type CopiedList, ListCopies } from '../list-copies.ts'
import { keepCopies, readKeptCopies } from './kept-copies.ts'
import { isLongList, type Keeps, LineObjects, type LineSink, readSignatureLines } from './signature-lines.ts'
import { unreadable } from '../../terminal/unreadable.ts'

/** A file of signatures: a list of Software in YAML or JSON, or a long list in lines of JSON. */
export interface SignatureFile {
  readonly path: string
  /** `null` for a long list. */
  readonly text: string | null
  readonly list: readonly Software[]
}

/** A file whose text can be edited. */
export interface TextFile extends SignatureFile {
  readonly text: string
}

/**
 * Loads the software of one set of files and folders; `null` is the built-in folder. Throws a ConfigFault
 * with all problems in any of them. `keeps`: which fingerprints of long lists to keep.
 */
export async function loadSoftware(
  paths: readonly string[] | null,
  keeps: Keeps = () => true,
): Promise<readonly Software[]> {
  return paths === null ? loadBuiltin(new ListCopies()) : softwareAt(paths, keeps, new ListCopies())
}

/**
 * The built-in software in the order of ids, as in the package. If two are equally likely, the first wins.
 */
export async function loadBuiltin(copies: ListCopies): Promise<readonly Software[]> {
  if (existsSync(BUILT_SIGNATURES)) return JSON.parse(await readText(BUILT_SIGNATURES))
  ours ??= loadOurs(copies)
  return ours
}

async function loadOurs(copies: ListCopies): Promise<readonly Software[]> {
  copies.addBefore(await readKeptCopies())
  const list = await softwareAt(null, () => true, copies)
  if (copies.parsed > 0) await keepCopies(copies.used)
  return list.toSorted((one, other) => (one.id < other.id ? -1 : 1))
}

/** Parsed once for each process. The YAML takes a good part of a second and changes only with the program. */
let ours: Promise<readonly Software[]> | null = null

async function softwareAt(
  paths: readonly string[] | null,
  keeps: Keeps,
  copies: ListCopies,
): Promise<readonly Software[]> {
  return (await loadSignatureFiles(paths, keeps, copies)).flatMap(({ list }) => list)
}

/** The hash of the built-in signatures, in hexadecimal. */
export async function builtinHash(): Promise<string> {
  const hash = createHash('sha256')
  for (const path of existsSync(BUILT_SIGNATURES) ? [BUILT_SIGNATURES] : await files(null))
    hash.update(await readText(path))
  return hash.digest('hex')
}

/** Like `loadSoftware`, but file by file, with long lists at the end. */
export async function loadSignatureFiles(
  paths: readonly string[] | null,
  keeps: Keeps = () => true,
  copies = new ListCopies(),
): Promise<readonly SignatureFile[]> {
  const reading = await SignatureReading.of(paths, copies)
  if (reading.longLists.length === 0) return reading.done()
  const objects = new LineObjects(reading.lists, paths === null ? [] : await loadSoftware(null), keeps)
  await reading.readLines(objects)
  reading.done()
  const texts = new Map(reading.lists.map(({ path, text }) => [path, text]))
  return [...texts.keys(), ...reading.longLists].map((path) => {
    return { path, text: texts.get(path) ?? null, list: objects.list(path) }
  })
}

/** Reads the files of one set: first the lists, then the long lists, which add to them. */
export class SignatureReading {
  readonly lists: TextFile[] = []
  readonly longLists: readonly string[]
  readonly #problems: Problem[] = []
  readonly #places = new Map<string, string>()
  readonly #copies: ListCopies

  static async of(paths: readonly string[] | null, copies = new ListCopies()): Promise<SignatureReading> {
    const all = await files(paths)
    const reading = new SignatureReading(all.filter(isLongList), copies)
    for (const path of all) if (!isLongList(path)) await reading.#readList(path)
    return reading
  }

  private constructor(longLists: readonly string[], copies: ListCopies) {
    this.longLists = longLists
    this.#copies = copies
  }

  async readLines(sink: LineSink): Promise<void> {
    for (const path of this.longLists)
      this.#problems.push(...(await readSignatureLines(path, this.#places, sink)))
  }

  /** Throws a ConfigFault with all problems in any of the files. */
  done(): readonly TextFile[] {
    if (this.#problems.length > 0) throw new ConfigFault(this.#problems, 'SIGNATURES_INVALID')
    return this.lists
  }

  async #readList(path: string): Promise<void> {
    try {
      const text = await readText(path)
      this.lists.push({ path, text, list: this.#listIn(text, path) })
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      this.#problems.push(
        ...(error instanceof ConfigFault ? error.problems : [{ where: path, what: error.message }]),
      )
    }
  }

  #listIn(text: string, path: string): readonly Software[] {
    const copied = this.#copies.find(text)
    if (copied !== null && areNew(copied, path, this.#places)) return copied.list
    const list = parsed(readSource(text, path), this.#places)
    const places = list.map(({ id }) => this.#places.get(id)!.slice(path.length))
    this.#copies.add(text, { list, places })
    return list
  }
}

/** Whether all ids of the list are new. If they are, adds them to `places`. */
function areNew({ list, places: ofList }: CopiedList, path: string, places: Map<string, string>): boolean {
  if (list.some(({ id }) => places.has(id))) return false
  for (const [index, { id }] of list.entries()) places.set(id, path + ofList[index]!)
  return true
}

/** The files to read for `paths`, in reading order. A missing path stands for itself. */
export async function files(paths: readonly string[] | null): Promise<readonly string[]> {
  const found = await Promise.all((paths ?? [SIGNATURES_FOLDER]).map(filesAt))
  return [...new Set(found.flat())]
}

/** Reads a file that may be anything, even endless. Throws a Fault. */
export async function readText(path: string): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of createReadStream(path)) {
      length += chunk.length
      if (length > FILE_BYTES_MAX) break
      chunks.push(chunk)
    }
  } catch (error) {
    throw unreadable(error)
  }
  if (length > FILE_BYTES_MAX) throw new Fault('TOO_LARGE', `is larger than ${FILE_BYTES_MAX} bytes`)
  const bytes = Buffer.concat(chunks)
  if (!isUtf8(bytes))
    throw new ConfigFault([{ where: `${path}:${lineThatIsNotUtf8(bytes)}`, what: 'is not UTF-8' }])
  return bytes.toString('utf8')
}

async function filesAt(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path]
    const names = await readdir(path)
    // Names with a leading dot belong to editors, or to Kubernetes (`..data`).
    return names
      .filter((name) => /^[^.].*\.(?:ya?ml|jsonl)$/.test(name))
      .sort()
      .map((name) => join(path, name))
  } catch {
    return [path] // reading it reports the error
  }
}

function parsed(source: Source, places: Map<string, string>): readonly Software[] {
  const twice = idsTwice(source, places)
  return placed(source, () => {
    let problems: readonly DocumentProblem[] = []
    try {
      const list = parseSoftwareList(source.value)
      if (twice.size === 0) return list
    } catch (error) {
      if (!(error instanceof DocumentFault)) throw error
      problems = error.problems.filter(({ pointer }) => !twice.has(pointer))
    }
    throw new DocumentFault('SIGNATURES_INVALID', [...twice.values(), ...problems])
  })
}

/** Finds ids that occurred before, by their pointers. Adds the ids of this file to `places`. */
function idsTwice(source: Source, places: Map<string, string>): ReadonlyMap<string, DocumentProblem> {
  const twice = new Map<string, DocumentProblem>()
  for (const [index, item] of (Array.isArray(source.value) ? source.value : []).entries()) {
    const id: unknown = item?.id
    const pointer = pointerTo(pointerTo('', index), 'id')
    const first = typeof id === 'string' ? places.get(id) : undefined
    if (first !== undefined)
      twice.set(pointer, { pointer, within: null, what: `${shown(id)} is taken: it stands at ${first}` })
    else if (typeof id === 'string') places.set(id, source.place(pointer))
  }
  return twice
}

function lineThatIsNotUtf8(bytes: Buffer): number {
  for (let line = 1, from = 0; ; line++) {
    const to = bytes.indexOf(LF, from)
    // Splitting at line feeds is safe, because no multi-byte character contains one.
    if (to === -1 || !isUtf8(bytes.subarray(from, to))) return line
    from = to + 1
  }
}

/** Four bytes for each character is the most that a parsable text takes. */
const FILE_BYTES_MAX = 16 * 1024 * 1024
const LF = 0x0a
