import type { ASTNode } from '@marcbachmann/cel-js'
import { isOurHeader } from '../classify/verdict/our-headers.ts'
import { didYouMean } from '../shared/did-you-mean.ts'
import { shown } from '../shared/problem.ts'
import { foldHeaderName } from '../wire/header-name.ts'
import { FIELDS } from './expression-facts.ts'
import { VOCABULARIES, vocabularyProblem } from './vocabulary.ts'
import type { WrittenId } from './written-id.ts'

/** A name of an agent or software that an expression compares with. */
export interface ComparedId {
  readonly of: WrittenId['of']
  readonly name: string
  readonly start: number
  readonly end: number
}

/** A part of an expression that is replaced by other text before compilation. */
export interface Replacement {
  readonly start: number
  readonly end: number
  readonly by: string
}

/** Checks every node of an expression before it is compiled. */
export class ExpressionWalk {
  readonly problems: string[] = []
  readonly unknownWords: string[] = []
  readonly asks = new Set<string>()
  readonly replacements: Replacement[] = []
  readonly ids: ComparedId[] = []
  /** The variable of the surrounding `exists` or `all` over a list of the verdict, and the words in that list. */
  #listVariable: { readonly name: string; readonly of: ListField } | null = null
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  /** The most steps a node can take. `names`: the variables of a surrounding `exists` or `all`. */
  stepsOf(node: ASTNode, names: readonly string[]): number {
    switch (node.op) {
      case 'value':
        return 1
      case 'id':
        return this.#nameSteps(node, names)
      case '.':
        return this.#fieldSteps(node, names)
      case '[]':
        return this.#indexSteps(node, names)
      case 'call':
        return this.#callSteps(node, node.args[0], null, node.args[1], names)
      case 'rcall':
        return this.#callSteps(node, node.args[0], node.args[1], node.args[2], names)
      case 'map':
        return this.#refuse(node, 'maps are not supported')
      case '.?':
      case '[?]':
        return this.#refuse(node, 'optional values are not supported')
      case 'list':
      case '?:':
        return this.#sum(node.args, names)
      case '!_':
      case '-_':
        return this.#sum([node.args], names)
      case 'in':
        return this.#inSteps(node, names)
      case '==':
      case '!=':
        this.#checkCompared(node.args[0], node.args[1])
        this.#checkCompared(node.args[1], node.args[0])
        return 1 + this.#sum(node.args, names)
      default:
        return (node.op === '+' ? JOIN_STEPS : 1) + this.#sum(node.args, names)
    }
  }

  #sum(nodes: readonly ASTNode[], names: readonly string[]): number {
    return nodes.reduce((steps, node) => steps + this.stepsOf(node, names), 1)
  }

  #nameSteps(node: ASTNode & { op: 'id' }, names: readonly string[]): number {
    const name = node.args
    if (names.includes(name)) return 1
    if (!Object.hasOwn(FIELDS, name))
      return this.#refuse(node, `unknown name ${shown(name)}${didYouMean(name, Object.keys(FIELDS))}`)
    if (FIELDS[name] !== 'bool')
      return this.#refuse(
        node,
        `${name} is not a single value; use one of its fields: ${Object.keys(FIELDS[name]!).join(', ')}`,
      )
    this.asks.add(name)
    return 1
  }

  #fieldSteps(node: ASTNode & { op: '.' }, names: readonly string[]): number {
    const [of, name] = node.args
    if (isHeaders(of)) return this.#headerSteps(node, name, null)
    if (of.op !== 'id' || names.includes(of.args)) return 1 + this.stepsOf(of, names)
    const fields = FIELDS[of.args]
    if (fields === undefined || fields === 'bool') return 1 + this.stepsOf(of, names)
    if (!Object.hasOwn(fields, name))
      return this.#refuse(node, `unknown field ${of.args}.${name}${didYouMean(name, Object.keys(fields))}`)
    this.asks.add(`${of.args}.${name}`)
    return 1
  }

  #indexSteps(node: ASTNode & { op: '[]' }, names: readonly string[]): number {
    const [of, key] = node.args
    if (!isHeaders(of)) return this.#sum([of, key], names)
    if (key.op === 'value' && typeof key.args === 'string') return this.#headerSteps(node, key.args, key)
    return this.#refuse(node, 'a header name must be a literal, like request.headers["accept"]')
  }

  #inSteps(node: ASTNode & { op: 'in' }, names: readonly string[]): number {
    const [name, of] = node.args
    if (of.op === 'list') for (const each of of.args) this.#checkCompared(name, each)
    const list = listField(of)
    if (list !== null) this.#checkWord(list, name)
    if (!isHeaders(of) || name.op !== 'value' || typeof name.args !== 'string')
      return this.#sum(node.args, names)
    this.#headerAsked(name, name.args)
    const { start, end } = name.range
    this.replacements.push({ start, end, by: keyOf(name.args) })
    return 2
  }

  /** `key`: the node of the quoted name, if the name is quoted. */
  #headerSteps(node: ASTNode, name: string, key: ASTNode | null): number {
    this.#headerAsked(key ?? node, name)
    const { start, end } = node.range
    if (!WHOLE_ACCESS.test(this.#text.slice(start, end)))
      return this.#refuse(node, 'write request.headers without parentheses around it')
    // A header that was not sent reads as an empty text; otherwise evaluation would end with an error.
    const by = `(${keyOf(name)} in request.headers ? request.headers[${keyOf(name)}] : "")`
    this.replacements.push({ start, end, by })
    return 4
  }

  #headerAsked(node: ASTNode, name: string): void {
    if (!TOKEN.test(name)) this.#refuse(node, `${shown(name)} is not a valid header name`)
    else if (name !== name.toLowerCase())
      this.#refuse(node, `a header name must be in lower case, unlike ${shown(name)}`)
    else if (isOurHeader(foldHeaderName(name)))
      this.#refuse(node, `${name} is a header that only the proxy sets; see forged`)
    else this.asks.add(`request.headers.${name}`)
  }

  #callSteps(
    node: ASTNode,
    name: string,
    of: ASTNode | null,
    given: readonly ASTNode[],
    names: readonly string[],
  ): number {
    if (name === 'has' && of === null) return this.#hasSteps(node, given[0])
    if (QUANTIFIERS.has(name) && of !== null) return this.#quantifierSteps(node, of, given, names)
    const known = FUNCTIONS.get(name)
    if (known === true) return this.#sum(of === null ? given : [of, ...given], names)
    const near = didYouMean(
      name,
      [...FUNCTIONS.keys()].filter((each) => FUNCTIONS.get(each) === true),
    )
    return this.#refuse(
      node,
      known === undefined ? `unknown function ${name}()${near}` : `${name}() ${known}`,
    )
  }

  #hasSteps(node: ASTNode, given: ASTNode | undefined): number {
    if (given?.op !== '.' || !isHeaders(given.args[0]))
      return this.#refuse(
        node,
        'has() takes a header, like has(request.headers.accept); all other fields always exist',
      )
    this.#headerAsked(given, given.args[1])
    const { start, end } = node.range
    this.replacements.push({ start, end, by: `(${keyOf(given.args[1])} in request.headers)` })
    return 2
  }

  #quantifierSteps(node: ASTNode, of: ASTNode, given: readonly ASTNode[], names: readonly string[]): number {
    const [variable, body] = given
    if (variable?.op !== 'id' || body === undefined)
      return this.#refuse(node, 'needs a name and a condition, like exists(kind, kind == "headless")')
    if (names.length > 0) return this.#refuse(node, 'cannot be nested in another exists or all')
    if (Object.hasOwn(FIELDS, variable.args))
      return this.#refuse(node, `${variable.args} is a reserved name; choose another`)
    const list = listField(of)
    if (of.op !== 'list' && list === null)
      return this.#refuse(node, 'works only on verdict.evidence, verdict.purpose or a literal list')
    const length = list === null ? (of.args as readonly ASTNode[]).length : VOCABULARIES[list].length
    if (list !== null) this.#listVariable = { name: variable.args, of: list }
    const steps = this.stepsOf(of, names) + length * this.stepsOf(body, [variable.args])
    this.#listVariable = null
    return steps
  }

  /** Checks a literal that a fact is compared with: a word of a vocabulary, or an id. */
  #checkCompared(fact: ASTNode, value: ASTNode): void {
    const variable = this.#listVariable
    if (variable !== null && fact.op === 'id' && fact.args === variable.name)
      this.#checkWord(variable.of, value)
    else if (isField(fact, 'verdict', 'kind')) this.#checkWord('verdict', value)
    // A fact without a value is an empty text, so an empty text is always valid.
    else if (isText(value) && value.args === '') return
    else if (isField(fact, 'verdict', 'category')) this.#checkWord('category', value)
    else if (isField(fact, 'verdict', 'proof_method')) this.#checkWord('proof method', value)
    else if (isField(fact, 'verdict', 'agent')) this.#keepId('agent', value)
    else if (isField(fact, 'verdict', 'software')) this.#keepId('software', value)
  }

  #checkWord(of: keyof typeof VOCABULARIES, value: ASTNode): void {
    const problem = isText(value) ? vocabularyProblem(of, value.args) : null
    if (problem !== null) this.unknownWords.push(`${at(this.#text, value.range.start)}${problem}`)
  }

  #keepId(of: WrittenId['of'], value: ASTNode): void {
    if (isText(value)) this.ids.push({ of, name: value.args, ...value.range })
  }

  #refuse(node: ASTNode, what: string): number {
    this.problems.push(`${at(this.#text, node.range.start)}${what}`)
    return 0
  }
}

function isHeaders(node: ASTNode): boolean {
  return isField(node, 'request', 'headers')
}

function isField(node: ASTNode, of: string, name: string): boolean {
  if (node.op !== '.' || node.args[1] !== name) return false
  return node.args[0].op === 'id' && node.args[0].args === of
}

/** The lists of the verdict. Each has a word at most once. */
type ListField = 'evidence' | 'purpose'

function listField(node: ASTNode): ListField | null {
  if (isField(node, 'verdict', 'evidence')) return 'evidence'
  return isField(node, 'verdict', 'purpose') ? 'purpose' : null
}

function isText(node: ASTNode): node is ASTNode & { readonly args: string } {
  return node.op === 'value' && typeof node.args === 'string'
}

/** The quoted key of a header in `request.headers`. */
function keyOf(name: string): string {
  return JSON.stringify(foldHeaderName(name))
}

/** The place of a character, for a message. */
export function at(text: string, offset: number): string {
  const before = text.slice(0, offset).split('\n')
  const line = before.length > 1 ? `line ${before.length}, ` : ''
  return `${line}character ${before.at(-1)!.length + 1}: `
}

/** Joined text is longer, so every later step with it costs more. */
const JOIN_STEPS = 20
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/
const WHOLE_ACCESS = /^request\s*\.\s*headers\s*[.[]/
const QUANTIFIERS: ReadonlySet<string> = new Set(['exists', 'exists_one', 'all'])
/** The supported functions, and for the others the reason why they are not supported. */
const FUNCTIONS: ReadonlyMap<string, true | string> = new Map<string, true | string>([
  ['size', true],
  ['startsWith', true],
  ['endsWith', true],
  ['contains', true],
  ['lowerAscii', true],
  ['upperAscii', true],
  ['trim', true],
  ['indexOf', true],
  ['lastIndexOf', true],
  ['substring', true],
  ['int', true],
  ['double', true],
  ['string', true],
  [
    'matches',
    'is not supported, because a regular expression can be too slow; use contains, startsWith or endsWith',
  ],
  ['map', 'is not supported; use exists or all'],
  ['filter', 'is not supported; use exists or all'],
  ['bind', 'is not supported'],
  ['timestamp', 'is not supported, because an expression has no clock; see `expires`'],
])
