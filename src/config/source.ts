import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  visit,
  type YAMLMap,
} from 'yaml'
import { Fault } from '../shared/fault.ts'
import { DocumentFault, type DocumentProblem } from '../shared/problem.ts'

/** A problem in an operator's input. */
export interface Problem {
  /** A file with line and column, a variable, or a flag. */
  readonly where: string
  readonly what: string
}

/** Unusable settings, with all problems. */
export class ConfigFault extends Fault {
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[], code = 'CONFIG_INVALID') {
    const more = problems.length - PROBLEMS_SAID_MAX
    const lines = problems.slice(0, PROBLEMS_SAID_MAX).map(({ where, what }) => `${where}: ${what}`)
    super(code, [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n'))
    this.problems = problems
  }
}

/** The value of a YAML or JSON text, with positions. */
export interface Source {
  readonly value: unknown
  /** `file:line:column` of the value at a JSON pointer, or of the nearest value around it. */
  place(pointer: string): string
}

/**
 * Reads YAML 1.2 with its core schema only: no custom tags, no duplicate keys, no merge keys, and limits on
 * alias expansion. Throws a ConfigFault with every problem of the text.
 */
export function readSource(text: string, name: string): Source {
  const lines = linesOf(text)
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return `${name}:${Math.max(line, 1)}:${Math.max(col, 1)}`
  }
  if (text.length > TEXT_LENGTH_MAX)
    throw new ConfigFault([{ where: name, what: `is longer than ${TEXT_LENGTH_MAX} characters` }])
  const document = documentOf(text, name, place)
  const offsets = new Map<string, number>()
  const value = document === null ? null : new Walk(document, offsets, place).value()
  return {
    value,
    place(pointer) {
      for (let at = pointer; ; at = at.slice(0, at.lastIndexOf('/'))) {
        const offset = offsets.get(at)
        if (offset !== undefined) return place(offset)
        if (at === '') return `${name}:1:1`
      }
    },
  }
}

/** Parses a source. Turns a DocumentFault into a ConfigFault with lines and names. */
export function placed<Parsed>(source: Source, parse: () => Parsed): Parsed {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof DocumentFault)) throw error
    throw new ConfigFault(
      error.problems.map((each) => placedProblem(source, each)),
      error.code,
    )
  }
}

/** Adds the line to a problem of the document. */
export function placedProblem(source: Source, { pointer, within, what }: DocumentProblem): Problem {
  // An item with a name is called by it instead of by its index.
  const member = nameOf(within === null ? pointer : pointer.replace(/^(?:\/(?:rules|first|last))?\/\d+/, ''))
  const parts = [within ?? '', member, what]
  return { where: source.place(pointer), what: parts.filter((part) => part !== '').join(': ') }
}

/** A JSON pointer in a readable form: `proxy.upstreams[0].urls`. */
export function nameOf(pointer: string): string {
  const tokens = pointer.slice(1).split('/').map(unescaped)
  return tokens.reduce((name, token) => {
    if (/^\d+$/.test(token)) return `${name}[${token}]`
    return name === '' ? token : `${name}.${token}`
  }, '')
}

/** The pointer to a member. */
export function pointerTo(pointer: string, member: string | number): string {
  return `${pointer}/${String(member).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

type Document = ReturnType<typeof parseAllDocuments>[number]

/** The parser counts lines too, but skips some after its first error. */
function linesOf(text: string): LineCounter {
  const lines = new LineCounter()
  lines.addNewLine(0)
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines.addNewLine(at + 1)
  return lines
}

function documentOf(text: string, name: string, place: (offset: number) => string): Document | null {
  let documents: readonly Document[]
  try {
    const parsed = parseAllDocuments(text, YAML_OPTIONS)
    documents = Array.isArray(parsed) ? parsed : []
  } catch (error) {
    // Nested so deep that the parser's own stack is full, or a bug of the parser's: either way, no settings.
    throw new ConfigFault([{ where: name, what: `is not valid YAML (${(error as Error).message})` }])
  }
  const problems = documents.flatMap((document) => [
    ...[...document.errors, ...document.warnings].map(({ pos, message }) => {
      return { where: place(pos[0]), what: message }
    }),
    ...keysTwice(document).map((offset) => {
      return { where: place(offset), what: `duplicate key ${wordAt(text, offset)}` }
    }),
  ])
  if (documents.length > 1)
    problems.push({
      where: place(documents[1]!.range?.[0] ?? 0),
      what: 'a second YAML document (---) starts here; only one is allowed',
    })
  if (problems.length > 0) throw new ConfigFault(problems)
  return documents[0] ?? null
}

/** Offsets of duplicate keys. The parser would compare all pairs, which takes minutes for many keys. */
function keysTwice(document: Document): readonly number[] {
  const offsets: number[] = []
  visit(document, {
    Map: (_, { items }) => {
      const names = new Set<unknown>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        if (names.has(key.value)) offsets.push(key.range?.[0] ?? 0)
        names.add(key.value)
      }
    },
  })
  return offsets
}

/** Converts nodes to values and records the position of each. */
class Walk {
  readonly #document: Document
  readonly #offsets: Map<string, number>
  readonly #place: (offset: number) => string
  #nodes = 0
  #aliases = 0

  constructor(document: Document, offsets: Map<string, number>, place: (offset: number) => string) {
    this.#document = document
    this.#offsets = offsets
    this.#place = place
  }

  value(): unknown {
    return this.#valueOf(this.#document.contents, '', 0)
  }

  #valueOf(node: unknown, pointer: string, depth: number): unknown {
    const offset = (node as Node | null)?.range?.[0] ?? null
    // A member's position is its key, which was recorded first: an empty value has no position.
    if (offset !== null && !this.#offsets.has(pointer)) this.#offsets.set(pointer, offset)
    if (++this.#nodes > NODES_MAX) throw this.#fault(offset, `has more than ${NODES_MAX} values`)
    if (depth > DEPTH_MAX) throw this.#fault(offset, `is nested deeper than ${DEPTH_MAX} levels`)
    if (isAlias(node)) return this.#valueOf(this.#target(node, offset), pointer, depth + 1)
    if (isSeq(node))
      return node.items.map((item, index) => this.#valueOf(item, pointerTo(pointer, index), depth + 1))
    if (isMap(node)) return this.#members(node, pointer, depth)
    const value = isScalar(node) ? node.value : null
    if (typeof value === 'object' && value !== null)
      throw this.#fault(offset, 'is not text, a number, true or false')
    return value
  }

  #members(map: YAMLMap, pointer: string, depth: number): Record<string, unknown> {
    const members: Record<string, unknown> = Object.create(null)
    for (const { key, value } of map.items) {
      const name = isScalar(key) ? key : null
      const offset = name?.range?.[0] ?? null
      if (name === null) throw this.#fault(offset, 'a key is not text')
      const member = pointerTo(pointer, String(name.value))
      this.#offsets.set(member, offset ?? 0)
      members[String(name.value)] = this.#valueOf(value, member, depth + 1)
    }
    return members
  }

  #target(alias: Alias, offset: number | null): Node {
    if (++this.#aliases > ALIASES_MAX) throw this.#fault(offset, `has more than ${ALIASES_MAX} aliases`)
    const target = alias.resolve(this.#document)
    if (target === undefined)
      throw this.#fault(offset, `alias *${alias.source} has no anchor &${alias.source}`)
    return target
  }

  #fault(offset: number | null, what: string): ConfigFault {
    return new ConfigFault([{ where: this.#place(offset ?? 0), what }])
  }
}

function wordAt(text: string, offset: number): string {
  return /^[^\s:]{0,60}/.exec(text.slice(offset, offset + 60))![0]
}

function unescaped(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~')
}

const YAML_OPTIONS = {
  version: '1.2',
  schema: 'core',
  merge: false,
  prettyErrors: false,
  stringKeys: true,
  uniqueKeys: false, // see keysTwice
} as const
/** The longest lists, of address ranges, take some hundred thousand characters. */
const TEXT_LENGTH_MAX = 4 * 1024 * 1024
/**
 * Each use of an alias counts with its whole content: a few lines of aliases can expand to billions of
 * values.
 */
const NODES_MAX = 200_000
/** The parser searches the target of each alias from the start of the text. */
const ALIASES_MAX = 200
const DEPTH_MAX = 32
/** More would not help. */
const PROBLEMS_SAID_MAX = 100
