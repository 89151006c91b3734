import { isUtf8 } from 'node:buffer'
import { createReadStream, existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSoftwareList, type Software } from '../classify/software.ts'
import { ConfigFault, type Problem, placed, pointerTo, readSource, type Source } from '../config-source.ts'
import { Fault } from '../fault.ts'
import { DocumentFault, type DocumentProblem, shown } from '../problem.ts'
import { unreadable } from './unreadable.ts'

/** A file of signatures: a list of Software in YAML or JSON. */
export interface SignatureFile {
  readonly path: string
  readonly text: string
  readonly list: readonly Software[]
}

/**
 * What one set of files and folders says; `null` is the folder that comes with Gatehouse. Throws a ConfigFault with
 * everything that is wrong in any of them.
 */
export async function loadSoftware(paths: readonly string[] | null): Promise<readonly Software[]> {
  if (paths === null && existsSync(BUILT)) return parseSoftwareList(JSON.parse(await readText(BUILT)))
  return (await loadSignatureFiles(paths)).flatMap(({ list }) => list)
}

/** The same, file by file. */
export async function loadSignatureFiles(paths: readonly string[] | null): Promise<readonly SignatureFile[]> {
  const loaded: SignatureFile[] = []
  const problems: Problem[] = []
  const places = new Map<string, string>()
  for (const path of await files(paths)) {
    try {
      const text = await readText(path)
      const list = parsed(readSource(text, path), places)
      loaded.push({ path, text, list })
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      problems.push(
        ...(error instanceof ConfigFault ? error.problems : [{ where: path, what: error.message }]),
      )
    }
  }
  if (problems.length > 0) throw new ConfigFault(problems, 'SIGNATURES_INVALID')
  return loaded
}

/** The files that are read for `paths`, in the order in which they are read; what is not there stands for itself. */
export async function files(paths: readonly string[] | null): Promise<readonly string[]> {
  const found = await Promise.all((paths ?? [BUILTIN_FOLDER]).map(filesAt))
  return [...new Set(found.flat())]
}

/** Later sets are the stronger ones: an operator's own entry takes the place of ours with the same id. */
export function mergeSoftware(sets: readonly (readonly Software[])[]): readonly Software[] {
  return [...new Map(sets.flat().map((software) => [software.id, software])).values()]
}

/** Text of a file that may be anything, also without an end. Throws a Fault. */
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
    // A name with a point in front is an editor's, or Kubernetes' `..data`.
    return names
      .filter((name) => /^[^.].*\.ya?ml$/.test(name))
      .sort()
      .map((name) => join(path, name))
  } catch {
    return [path] // reading it will say why
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

/** Ids that this file or one before it has had, by their pointers. Adds those of this file to `places`. */
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
    // No character of several bytes has a line feed among them.
    if (to === -1 || !isUtf8(bytes.subarray(from, to))) return line
    from = to + 1
  }
}

/** One folder above src/ and above dist/ alike. */
export /** The same as the folder's files, made by `npm run build`: read in a twentieth of the time, and of the memory. */
const BUILT = fileURLToPath(new URL('../signatures.json', import.meta.url))
export const BUILTIN_FOLDER = fileURLToPath(new URL('../../signatures', import.meta.url))
/** Four bytes a character is the most that a text which can be read takes. */
const FILE_BYTES_MAX = 16 * 1024 * 1024
const LF = 0x0a
