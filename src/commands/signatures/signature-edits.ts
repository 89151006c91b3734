import { isDeepStrictEqual } from 'node:util'
import {
  Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
import type { Signature } from '../../classify/known/signature.ts'
import { parseSoftwareList, type Software, type SoftwareId } from '../../classify/known/software.ts'
import { signatureDocument, softwareDocument } from '../../classify/known/software-document.ts'
import { ConfigFault, placed, readSource } from '../../config/source.ts'
import { Fault } from '../../shared/fault.ts'
import type { TextFile } from '../../runtime/signatures/signature-files.ts'
import { signatureKey } from './signature-measurements.ts'

/** A signature file with its additions. */
interface Edited {
  readonly text: string
  readonly changes: readonly SignatureChange[]
}

export interface SignatureChange {
  readonly id: SoftwareId
  readonly isNew: boolean
  readonly added: number
  readonly replaced: number
}

/**
 * Adds `measured` to a file: replaces signatures of the same source, adds the others, and appends
 * `newcomers`. Every other character stays as its author wrote it. Throws a Fault if the edit would change
 * the meaning: in some YAML styles a new line becomes part of the text above it.
 */
export function edited(
  file: TextFile,
  measured: (id: SoftwareId) => readonly Signature[],
  newcomers: readonly Software[],
): Edited {
  const editor = new Editor(file)
  const changes: SignatureChange[] = []
  const expected: Software[] = []
  for (const [index, software] of file.list.entries()) {
    const { change, signatures } = merged(software, measured(software.id), editor.of(index, software))
    if (change !== null) changes.push(change)
    expected.push({ ...software, signatures })
  }
  for (const newcomer of newcomers) {
    editor.append(newcomer)
    changes.push({ id: newcomer.id, isNew: true, added: newcomer.signatures.length, replaced: 0 })
    expected.push(newcomer)
  }
  if (changes.length === 0) return { text: file.text, changes }
  const text = editor.text()
  if (isDeepStrictEqual(listIn(text, file.path), expected)) return { text, changes }
  const what = 'is written in a way that leaves no place for more; write it as a list, one an item'
  throw new Fault(UNEDITABLE, `${file.path}: ${what}`)
}

/** Parses an edited text; `null`: it is no longer readable. */
function listIn(text: string, path: string): readonly Software[] | null {
  try {
    const source = readSource(text, path)
    return placed(source, () => parseSoftwareList(source.value))
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error
    return null
  }
}

function merged(
  software: Software,
  measured: readonly Signature[],
  editor: SoftwareEditor,
): { readonly change: SignatureChange | null; readonly signatures: readonly Signature[] } {
  const signatures = [...software.signatures]
  const places = new Map(signatures.map((signature, index) => [signatureKey(signature), index]))
  const added: Signature[] = []
  let replaced = 0
  for (const signature of measured) {
    const index = places.get(signatureKey(signature))
    if (index === undefined) {
      added.push(signature)
      continue
    }
    const before = signatures[index]!
    if (before.observations === signature.observations && before.date === signature.date) continue
    editor.replace(index, signature)
    signatures[index] = signature
    replaced++
  }
  if (added.length > 0) editor.add(added)
  const isChanged = added.length + replaced > 0
  const change = isChanged ? { id: software.id, isNew: false, added: added.length, replaced } : null
  return { change, signatures: [...signatures, ...added] }
}

/** Collects edits of a text. */
class Editor {
  readonly #file: TextFile
  readonly #root: Node | null
  readonly #lineEnd: string
  readonly #edits: { readonly at: number; readonly to: number; readonly text: string }[] = []
  /** Software to append at the end. */
  readonly #newcomers: Software[] = []

  constructor(file: TextFile) {
    this.#file = file
    this.#root = parseDocument<Node>(file.text, YAML_OPTIONS).contents
    this.#lineEnd = file.text.includes('\r\n') ? '\r\n' : '\n'
  }

  of(index: number, software: Software): SoftwareEditor {
    return new SoftwareEditor(this, isSeq(this.#root) ? this.#root.items[index] : null, () => {
      const why = 'is written with anchors, aliases or without a list; write its signatures out, one an item'
      return new Fault(UNEDITABLE, `${this.#file.path}: software "${software.id}" ${why}`)
    })
  }

  append(newcomer: Software): void {
    this.#newcomers.push(newcomer)
  }

  replaceNode(node: Node, text: string): void {
    this.#edits.push({ at: node.range![0], to: node.range![1], text })
  }

  /** After an item of a collection in brackets. */
  insertBehind(node: Node, text: string): void {
    this.#edits.push({ at: node.range![1], to: node.range![1], text: `, ${text}` })
  }

  /** As separate lines, after the last line of an item. */
  insertLines(node: Node, column: number, text: string): void {
    const end = endOf(node)
    const lineEnd = this.#file.text[end - 1] === '\n' ? end - 1 : this.#file.text.indexOf('\n', end)
    this.#insertAt(lineEnd === -1 ? this.#file.text.length : lineEnd + 1, column, text)
  }

  column(node: Node): number {
    const start = node.range![0]
    return start - (this.#file.text.lastIndexOf('\n', start - 1) + 1)
  }

  text(): string {
    if (this.#newcomers.length > 0) this.#insertNewcomers(this.#newcomers)
    // From the end, so that earlier offsets stay valid; of two edits at one place, the first comes first.
    const edits = [...this.#edits].reverse().sort((a, b) => b.at - a.at)
    return edits.reduce(
      (text, { at, to, text: put }) => text.slice(0, at) + put + text.slice(to),
      this.#file.text,
    )
  }

  #insertNewcomers(newcomers: readonly Software[]): void {
    const root = this.#root
    const documents = newcomers.map(softwareDocument)
    if (!isSeq(root)) return this.#insertAt(this.#file.text.length, 0, yamlOf(documents))
    if (root.flow !== true)
      return this.#insertAt(this.#file.text.length, this.column(root), yamlOf(documents))
    const last = root.items.at(-1) as Node | undefined
    if (last === undefined) this.replaceNode(root, flowOf(documents))
    else this.insertBehind(last, flowOf(documents).slice(1, -1).trim())
  }

  #insertAt(at: number, column: number, text: string): void {
    const isLineOpen = at > 0 && this.#file.text[at - 1] !== '\n'
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => `${line === '' ? '' : ' '.repeat(column)}${line}${this.#lineEnd}`)
    this.#edits.push({ at, to: at, text: (isLineOpen ? this.#lineEnd : '') + lines.join('') })
  }
}

/** Edits one Software of a text. */
class SoftwareEditor {
  readonly #editor: Editor
  readonly #node: unknown
  readonly #uneditable: () => Fault

  constructor(editor: Editor, node: unknown, uneditable: () => Fault) {
    this.#editor = editor
    this.#node = node
    this.#uneditable = uneditable
  }

  add(added: readonly Signature[]): void {
    const documents = added.map(signatureDocument)
    const software = this.#map(this.#node)
    const signatures = software.get('signatures', true) as Node | undefined
    if (signatures === undefined) return this.#addList(software, documents)
    const list = this.#list(signatures)
    const last = this.#map(list.items.at(-1))
    if (list.flow === true) return this.#editor.insertBehind(last, documents.map(flowOf).join(', '))
    // One line each, unless the previous item has several.
    const text =
      last.flow === true ? documents.map((each) => `- ${flowOf(each)}`).join('\n') : yamlOf(documents)
    this.#editor.insertLines(last, this.#editor.column(list), text)
  }

  replace(index: number, { date, observations }: Signature): void {
    const signatures = this.#map(this.#node).get('signatures', true)
    const map = this.#map(this.#list(signatures).items[index])
    this.#set(map, 'date', date)
    this.#set(map, 'observations', String(observations))
  }

  #addList(software: YAMLMap, documents: readonly object[]): void {
    const last = nodeOf(software.items.at(-1)!)
    if (software.flow === true) return this.#editor.insertBehind(last, `signatures: ${flowOf(documents)}`)
    const lines = documents.map((each) => `  - ${flowOf(each)}`)
    this.#editor.insertLines(last, this.#editor.column(software), ['signatures:', ...lines].join('\n'))
  }

  #set(map: YAMLMap, name: string, text: string): void {
    const node = map.get(name, true) as Node | undefined
    const last = nodeOf(map.items.at(-1)!)
    if (node !== undefined) this.#editor.replaceNode(this.#unshared(node), text)
    else if (map.flow === true) this.#editor.insertBehind(last, `${name}: ${text}`)
    else this.#editor.insertLines(last, this.#editor.column(map), `${name}: ${text}`)
  }

  #list(node: unknown): YAMLSeq {
    if (isSeq(node)) return this.#unshared(node)
    throw this.#uneditable()
  }

  #map(node: unknown): YAMLMap {
    if (isMap(node)) return this.#unshared(node)
    throw this.#uneditable()
  }

  /** Refuses a node with an anchor: the edit would also change the places that refer to it. */
  #unshared<Of extends Node>(node: Of): Of {
    if (!isAlias(node) && (node as { anchor?: string }).anchor !== undefined) throw this.#uneditable()
    return node
  }
}

/** YAML in the style of the bundled files: lists of words, such as header names, on one line each. */
export function yamlOf(value: unknown): string {
  const document = new Document(value, { version: '1.2', schema: 'core', aliasDuplicateObjects: false })
  visit(document, {
    Seq: (_, list) => {
      if (list.items.every(isScalar)) list.flow = true
    },
  })
  return document.toString(ONE_LINE)
}

function flowOf(value: unknown): string {
  const document = new Document(value, { version: '1.2', schema: 'core', aliasDuplicateObjects: false })
  if (document.contents !== null) (document.contents as YAMLMap).flow = true
  return document.toString(ONE_LINE).trimEnd()
}

/** The offset behind the last character of a node, without trailing blanks and comments. */
function endOf(node: Node): number {
  const last = (isMap(node) || isSeq(node)) && node.flow !== true ? node.items.at(-1) : undefined
  if (last === undefined) return node.range![1]
  return endOf(isMap(node) ? nodeOf(last as Pair) : (last as Node))
}

function nodeOf({ key, value }: Pair): Node {
  return (value ?? key) as Node
}

const UNEDITABLE = 'SIGNATURES_UNEDITABLE'
const YAML_OPTIONS = { version: '1.2', schema: 'core', merge: false, prettyErrors: false } as const
const ONE_LINE = { lineWidth: 0 } as const
