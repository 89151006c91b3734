import { asBytes, Glob } from '../../../policy/glob.ts'

/** A robots.txt as RFC 9309 reads it. What is none, is none that asks anything of anybody. */
export class RobotsTxt {
  readonly #groups: readonly Group[]
  /** By token. Agents have a few hundred of these. */
  readonly #rules = new Map<string, readonly Rule[]>()

  private constructor(groups: readonly Group[]) {
    this.#groups = groups
  }

  /** What is behind the first half megabyte does not count, as for most crawlers. */
  static parse(text: string): RobotsTxt {
    const groups: Group[] = []
    let group: Group | null = null
    let isNaming = false
    for (const line of text
      .slice(0, TEXT_MAX)
      .replace(/^\ufeff/, '')
      .split(LINE_END, LINES_MAX)) {
      const { name, value } = recordIn(line)
      if (name === 'user-agent') {
        if (!isNaming || group === null) {
          group = { tokens: [], rules: [] }
          groups.push(group)
        }
        group.tokens.push(tokenIn(value))
        isNaming = true
      } else if (name === 'allow' || name === 'disallow') {
        isNaming = false
        // Before any group there is nobody it is for; an empty one asks for nothing.
        if (group !== null && value !== '') group.rules.push(ruleOf(name, value, line))
      }
    }
    return new RobotsTxt(groups)
  }

  /**
   * The line that asks who goes by this token not to ask for the path; `null`: none does. Of the path there is no query:
   * where an allowing line hangs on one, it is taken to be there.
   */
  disallowing(token: string, path: string): string | null {
    if (path === '/robots.txt') return null
    const text = normalized(path, false)
    let best: Rule | null = null
    for (const rule of this.#rulesFor(token.toLowerCase())) {
      if (!rule.pattern.matches(text)) continue
      // The longest says what holds; of two as long, the one that allows.
      if (best === null || rule.length > best.length || (rule.length === best.length && rule.allows))
        best = rule
    }
    return best === null || best.allows ? null : best.line
  }

  /** Of all groups that name it; of those for all others, where none does. */
  #rulesFor(token: string): readonly Rule[] {
    const known = this.#rules.get(token)
    if (known !== undefined) return known
    const rules = this.#find(token)
    this.#rules.set(token, rules)
    return rules
  }

  #find(token: string): readonly Rule[] {
    const named = this.#groups.filter(({ tokens }) => tokens.includes(token))
    const groups = named.length > 0 ? named : this.#groups.filter(({ tokens }) => tokens.includes('*'))
    return groups.flatMap(({ rules }) => rules)
  }
}

interface Group {
  readonly tokens: string[]
  readonly rules: Rule[]
}

interface Rule {
  readonly allows: boolean
  readonly pattern: Glob
  /** Of what it is written with, in octets. */
  readonly length: number
  /** As it stands there. */
  readonly line: string
}

function recordIn(line: string): { readonly name: string; readonly value: string } {
  const [content = ''] = line.split('#', 1)
  const colon = content.indexOf(':')
  if (colon === -1) return { name: '', value: '' }
  return { name: content.slice(0, colon).trim().toLowerCase(), value: content.slice(colon + 1).trim() }
}

/** Some write a version behind it, which is no part of it. */
function tokenIn(value: string): string {
  return value.split(/[/\s]/, 1)[0]!.toLowerCase()
}

function ruleOf(name: 'allow' | 'disallow', value: string, line: string): Rule {
  const allows = name === 'allow'
  const query = allows ? value.indexOf('?') : -1
  const written = query === -1 ? value : `${value.slice(0, query)}$`
  const isWhole = written.endsWith('$')
  const literals = (isWhole ? written.slice(0, -1) : written).split('*').map((part) => normalized(part, true))
  const pattern = new Glob(isWhole ? literals : [...literals, ''])
  const said = line.trim().slice(0, SAID_MAX)
  return { allows, pattern, length: normalized(value, true).length, line: said }
}

/**
 * Two ways to write a path are one: what need not be escaped is not, what has to be is, in capitals. In a path, `*` and
 * `$` are no more than themselves; a pattern means them by writing them so.
 */
function normalized(text: string, isPattern: boolean): string {
  // A path is as it came, a character each byte; a file was read as UTF-8.
  const bytes = isPattern ? asBytes(text) : text
  const plain = bytes.replaceAll(ESCAPE, (escaped, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return UNRESERVED.test(character) ? character : escaped.toUpperCase()
  })
  return plain.replaceAll(isPattern ? BEYOND_ASCII : BEYOND_ASCII_OR_SPECIAL, escapedCharacter)
}

function escapedCharacter(character: string): string {
  return `%${(character.charCodeAt(0) & 0xff).toString(16).toUpperCase().padStart(2, '0')}`
}

const LINE_END = /\r\n|\n|\r/
const ESCAPE = /%([0-9a-f]{2})/gi
const UNRESERVED = /[\w.~-]/
const BEYOND_ASCII = /[^\0-\x7f]/g
const BEYOND_ASCII_OR_SPECIAL = /[^\0-\x7f]|[*$]/g
/** RFC 9309 §2.5 has crawlers read at least so much. */
const TEXT_MAX = 512_000
const LINES_MAX = 20_000
const SAID_MAX = 200
