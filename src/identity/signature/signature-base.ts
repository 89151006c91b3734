import {
  type Dictionary,
  type Item,
  isInnerList,
  parseDictionary,
  parseItem,
  parseList,
  serializeDictionary,
  serializeItem,
  serializeList,
} from 'structured-headers'
import type { RequestHead } from '../../wire/request-head.ts'
import { innerListText, itemText, readDictionary } from './structured-text.ts'

/** A request as its signer saw it. */
export interface SignedRequest extends Pick<RequestHead, 'method' | 'target' | 'rawHeaders'> {
  /** Scheme and authority before the target: `https://gate.example`. From settings or from the connection. */
  readonly base: string
}

/** A component that a signature covers. */
export interface Component {
  /** `@method`, `content-digest`. */
  readonly name: string
  /** The dictionary member or query parameter; `null`: the whole component is covered. */
  readonly part: string | null
  /** The identifier as signed: `"signature-agent";key="sig1"`. */
  readonly text: string
  readonly form: Form
}

/** The component of an identifier; `null`: unknown. */
export function componentOf(identifier: Item): Component | null {
  const [name, parameters] = identifier
  if (typeof name !== 'string') return null
  const form = formOf(name, new Map(parameters))
  if (form === null) return null
  const part = form.kind === 'member' || form.kind === 'parameter' ? form.part : null
  return { name, part, form, text: itemText(identifier) }
}

/** The value of a component in a request; `null`: missing or not signable. */
export class ComponentValues {
  readonly #request: SignedRequest
  #structuredLeft: number
  // Several components may use one field or the query, so each is parsed once.
  readonly #dictionaries = new Map<string, Dictionary | null>()
  #parameters: ReadonlyMap<string, string | null> | null = null

  /** `structuredLengthMax`: total length of text to parse. */
  constructor(request: SignedRequest, structuredLengthMax = STRUCTURED_LENGTH_MAX) {
    this.#request = request
    this.#structuredLeft = structuredLengthMax
  }

  of({ name, form }: Component): string | null {
    const value = this.#value(name, form)
    return value !== null && ASCII.test(value) ? value : null
  }

  #value(name: string, form: Form): string | null {
    const { rawHeaders } = this.#request
    switch (form.kind) {
      case 'derived':
        return derived(this.#request, name)
      case 'parameter':
        this.#parameters ??= this.#queried()
        return this.#parameters.get(form.part) ?? null
      case 'field':
        return fieldValue(rawHeaders, name)
      case 'bytes':
        return linesOf(rawHeaders, name)?.map(asBytes).join(', ') ?? null
      case 'strict':
        return strict(this.#structured(name), STRUCTURED.get(name))
      case 'member':
        return this.#member(name, form.part)
    }
  }

  /** Returns nothing for a query longer than the remaining parse limit. */
  #queried(): ReadonlyMap<string, string | null> {
    const { target } = this.#request
    const query = target.indexOf('?')
    if (query === -1) return NO_PARAMETERS
    this.#structuredLeft -= target.length - query
    return this.#structuredLeft < 0 ? NO_PARAMETERS : queryParameters(target.slice(query + 1))
  }

  /** `null`: the field is missing, or the total parse limit is exceeded. */
  #structured(name: string): string | null {
    const text = fieldValue(this.#request.rawHeaders, name)
    this.#structuredLeft -= text?.length ?? 0
    return this.#structuredLeft < 0 ? null : text
  }

  #member(name: string, key: string): string | null {
    let dictionary = this.#dictionaries.get(name)
    if (dictionary === undefined) {
      dictionary = dictionaryIn(this.#structured(name))
      this.#dictionaries.set(name, dictionary)
    }
    const member = dictionary?.get(key)
    if (member === undefined) return null
    return isInnerList(member) ? innerListText(member) : itemText(member)
  }
}

/** All lines of this field joined (RFC 9421 §2.1); `null`: missing. `name`: in lower case. */
export function fieldValue(rawHeaders: readonly string[], name: string): string | null {
  return linesOf(rawHeaders, name)?.join(', ') ?? null
}

/** How the value of a component is computed. */
export type Form =
  | { readonly kind: 'derived' | 'field' | 'bytes' | 'strict' }
  | { readonly kind: 'parameter' | 'member'; readonly part: string }

function formOf(name: string, parameters: Map<string, unknown>): Form | null {
  const key = name === '@query-param' ? 'name' : 'key'
  const part = parameters.get(key)
  parameters.delete(key)
  if (part !== undefined && typeof part !== 'string') return null
  if (name === '@query-param')
    return part === undefined || parameters.size > 0 ? null : { kind: 'parameter', part }
  if (name.startsWith('@'))
    return DERIVED.has(name) && part === undefined && parameters.size === 0 ? { kind: 'derived' } : null
  if (!FIELD_NAME.test(name)) return null
  // `;key` implies `;sf`.
  const flags = [...parameters].filter(([flag]) => part === undefined || flag !== 'sf')
  if (flags.some(([, value]) => value !== true) || flags.length > 1) return null
  const flag = flags[0]?.[0]
  if (part !== undefined) return flag === undefined ? { kind: 'member', part } : null
  if (flag === undefined) return { kind: 'field' }
  if (flag === 'bs') return { kind: 'bytes' }
  // `;req` and `;tr` apply to responses and trailers, which are not signed here.
  return flag === 'sf' && STRUCTURED.has(name) ? { kind: 'strict' } : null
}

/** Derived components (RFC 9421 §2.2). */
function derived({ method, base, target }: SignedRequest, name: string): string | null {
  if (name === '@method') return method
  if (name === '@request-target') return target
  const [, scheme, authority, prefix] = BASE.exec(base) ?? []
  if (scheme === undefined || authority === undefined) return null
  if (name === '@scheme') return scheme.toLowerCase()
  if (name === '@authority') return authority.toLowerCase().replace(DEFAULT_PORTS[scheme.toLowerCase()]!, '')
  // A target without a path has only this form.
  if (!target.startsWith('/')) return null
  const query = target.indexOf('?')
  switch (name) {
    case '@target-uri':
      return base + target
    case '@path':
      return prefix + (query === -1 ? target : target.slice(0, query))
    case '@query':
      return query === -1 ? '?' : target.slice(query)
    default:
      return null
  }
}

/** RFC 9421 §2.2.8. `null`: the parameter occurs twice, so its value is ambiguous. */
function queryParameters(query: string): ReadonlyMap<string, string | null> {
  const found = new Map<string, string | null>()
  for (const [each, value] of new URLSearchParams(query)) {
    const name = formEncoded(each)
    found.set(name, found.has(name) ? null : formEncoded(value))
  }
  return found
}

function formEncoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()~]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function linesOf(rawHeaders: readonly string[], name: string): string[] | null {
  const lines: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const each = rawHeaders[i]!
    if (each.length === name.length && each.toLowerCase() === name)
      lines.push(withoutBlanks(rawHeaders[i + 1]!))
  }
  return lines.length === 0 ? null : lines
}

/** Trims both ends and unfolds folded lines. */
function withoutBlanks(line: string): string {
  const text = line.includes('\r\n') ? line.replaceAll(/\r\n[\t ]+/g, ' ') : line
  let [start, end] = [0, text.length]
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (start < end && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

function asBytes(line: string): string {
  return `:${Buffer.from(line, 'latin1').toString('base64')}:`
}

function strict(text: string | null, type: StructuredType | undefined): string | null {
  if (text === null) return null
  try {
    switch (type) {
      case 'dictionary':
        return serializeDictionary(parseDictionary(text))
      case 'list':
        return serializeList(parseList(text))
      case 'item':
        return serializeItem(parseItem(text))
      default:
        return null
    }
  } catch {
    return null
  }
}

function dictionaryIn(text: string | null): Dictionary | null {
  if (text === null) return null
  try {
    return readDictionary(text)
  } catch {
    return null
  }
}

type StructuredType = 'dictionary' | 'list' | 'item'

const NO_PARAMETERS: ReadonlyMap<string, string | null> = new Map()
const ASCII = /^[\t\x20-\x7e]*$/
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/
const BASE = /^(https?):\/\/([^/?#@]+)([^?#]*)$/i
const DEFAULT_PORTS: Readonly<Record<string, RegExp>> = { http: /:80$/, https: /:443$/ }
const DERIVED: ReadonlySet<string> = new Set([
  '@method',
  '@target-uri',
  '@authority',
  '@scheme',
  '@request-target',
  '@path',
  '@query',
])
/** Limits parsing to some milliseconds. */
const STRUCTURED_LENGTH_MAX = 8_192
/** Structured fields for which `;sf` is supported. */
const STRUCTURED: ReadonlyMap<string, StructuredType> = new Map([
  ['accept-signature', 'dictionary'],
  ['client-cert', 'item'],
  ['client-cert-chain', 'list'],
  ['content-digest', 'dictionary'],
  ['priority', 'dictionary'],
  ['repr-digest', 'dictionary'],
  ['signature', 'dictionary'],
  ['signature-agent', 'dictionary'],
  ['signature-input', 'dictionary'],
  ['want-content-digest', 'dictionary'],
  ['want-repr-digest', 'dictionary'],
])
