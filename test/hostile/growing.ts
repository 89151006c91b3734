import { globSync, readFileSync } from 'node:fs'
import { parseAst } from 'vite'

/** Something in src/ that lives on and can become longer: a Map, a Set, a cache, a list. */
export interface Growing {
  readonly file: string
  /** `Class.#field`, or the name of what a module holds. */
  readonly name: string
  readonly kind: string
}

/**
 * All of them, by their source: fields of classes, and what modules hold, that is not of a type that says that nobody
 * changes it. What a function makes for itself is gone with it.
 */
export function growing(pattern = 'src/**/*.ts'): readonly Growing[] {
  return globSync(pattern)
    .filter((file) => !ELSEWHERE.test(file))
    .toSorted()
    .flatMap((file) => {
      const found = new Map<string, Growing>()
      const add = (name: string, type: unknown, value: Node) => {
        const kind = kindOf(value)
        if (kind !== null && !isFixed(type, value)) found.set(name, { file, name, kind })
      }
      const { body } = parseAst(readFileSync(file, 'utf8'), { lang: 'ts' }) as unknown as Module
      for (const statement of body) inModule(statement, add)
      return [...found.values()]
    })
}

type Add = (name: string, type: unknown, value: Node) => void

function inModule(statement: Node, add: Add): void {
  const declared = statement.declaration ?? statement
  for (const { id, init } of declared.declarations ?? [])
    if (init != null) add(id?.name ?? '', id?.typeAnnotation, init)
  if (declared.type === 'ClassDeclaration') inClass(declared.id?.name ?? '', declared.body?.body ?? [], add)
}

function inClass(className: string, members: readonly Node[], add: Add): void {
  const types = new Map<string, unknown>()
  for (const { type, key, typeAnnotation, value } of members) {
    if (type !== 'PropertyDefinition' || key == null) continue
    types.set(nameOf(key), typeAnnotation)
    if (value != null) add(`${className}.${nameOf(key)}`, typeAnnotation, value)
  }
  // What constructors make of what they are given.
  walk(members, ({ type, left, right }) => {
    if (type !== 'AssignmentExpression' || left?.object?.type !== 'ThisExpression' || right == null) return
    const name = nameOf(left.property!)
    if (types.has(name)) add(`${className}.${name}`, types.get(name), right)
  })
}

function kindOf({ type, callee, elements }: Node): string | null {
  if (type === 'ArrayExpression') return elements?.length === 0 ? 'list' : null
  return type === 'NewExpression' && KINDS.has(callee?.name ?? '') ? callee!.name! : null
}

/** Its type says so, or it is a table that is written down. */
function isFixed(type: unknown, value: Node): boolean {
  if (/"name":"Readonly(?:Map|Set|Array)"|"operator":"readonly"/.test(JSON.stringify(type ?? null)))
    return true
  const isFilled = (value.arguments?.length ?? 0) > 0 && !CACHES.has(value.callee?.name ?? '')
  return isFilled && value.typeArguments == null && type == null
}

function nameOf({ type, name }: Node): string {
  return type === 'PrivateIdentifier' ? `#${name}` : (name ?? '')
}

function walk(node: unknown, visit: (node: Node) => void): void {
  if (typeof node !== 'object' || node === null) return
  if ('type' in node) visit(node as Node)
  for (const member of Object.values(node)) walk(member, visit)
}

/** As ESTree has them, as far as is looked at. */
interface Node {
  readonly type: string
  readonly name?: string
  readonly id?: Node | null
  readonly init?: Node | null
  readonly key?: Node
  readonly value?: Node | null
  readonly body?: Module
  readonly declaration?: Node | null
  readonly declarations?: readonly Node[]
  readonly typeAnnotation?: unknown
  readonly typeArguments?: unknown
  readonly callee?: Node
  readonly arguments?: readonly Node[]
  readonly elements?: readonly unknown[]
  readonly left?: Node
  readonly right?: Node
  readonly object?: Node
  readonly property?: Node
}

interface Module {
  readonly body: readonly Node[]
}

/** The page has one reader; commands and the reading of settings are over soon. */
const ELSEWHERE = /^src\/(?:dashboard|commands|config)\//
/** A WeakMap grows only with existing objects. */
/** What they are given are settings, and not what is in them. */
const CACHES: ReadonlySet<string> = new Set(['LRUCache', 'LateCache'])
const KINDS: ReadonlySet<string> = new Set(['Map', 'Set', ...CACHES])
