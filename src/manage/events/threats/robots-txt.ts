import { asBytes, Glob } from '../../../policy/glob.ts'

/** A robots.txt, parsed as in RFC 9309. Invalid input is treated as an empty file: everything is allowed. */
export class RobotsTxt {
  readonly #groups: readonly Group[]
  /** By token. Agents have a few hundred tokens. */
  readonly #rules = new Map<string, readonly RobotsRule[]>()

  private constructor(groups: readonly Group[]) {
    this.#groups = groups
  }

  /** Ignores everything after the first 512,000 characters, as most crawlers do. */
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
        // A rule before the first group applies to no crawler. An empty rule has no effect.
        if (group !== null && value !== '') group.rules.push(ruleOf(name, value, line))
      }
    }
    return new RobotsTxt(groups)
  }

  /**
   * The line that disallows the path for this token; `null`: the path is allowed. The path has no query, so
   * the query in an `allow` line is assumed to match.
   */
  disallowing(token: string, path: string): string | null {
    if (path === '/robots.txt') return null
    const text = normalized(path, false)
    let best: RobotsRule | null = null
    for (const rule of this.#rulesFor(token.toLowerCase())) {
      if (!rule.pattern.matches(text)) continue
      // The longest match wins. If two are equally long, the one that allows wins.
      if (best === null || rule.length > best.length || (rule.length === best.length && rule.allows))
        best = rule
    }
    return best === null || best.allows ? null : best.line
  }

  /** The rules of all groups that name the token, or else of the `*` groups. */
  #rulesFor(token: string): readonly RobotsRule[] {
    const known = this.#rules.get(token)
    if (known !== undefined) return known
    const rules = this.#find(token)
    this.#rules.set(token, rules)
    return rules
  }

  #find(token: string): readonly RobotsRule[] {
    const named = this.#groups.filter(({ tokens }) => tokens.includes(token))
    const groups = named.length > 0 ? named : this.#groups.filter(({ tokens }) => tokens.includes('*'))
    return groups.flatMap(({ rules }) => rules)
  }
}

interface Group {
  readonly tokens: string[]
  readonly rules: RobotsRule[]
}

interface RobotsRule {
  readonly allows: boolean
  readonly pattern: Glob
  /** The length of the pattern in octets, for precedence. */
  readonly length: number
  /** The line as written in the file. */
  readonly line: string
}

function recordIn(line: string): { readonly name: string; readonly value: string } {
  const [content = ''] = line.split('#', 1)
  const colon = content.indexOf(':')
  if (colon === -1) return { name: '', value: '' }
  return { name: content.slice(0, colon).trim().toLowerCase(), value: content.slice(colon + 1).trim() }
}

/** Some files add a version to the token. It is ignored. */
function tokenIn(value: string): string {
  return value.split(/[/\s]/, 1)[0]!.toLowerCase()
}

function ruleOf(name: 'allow' | 'disallow', value: string, line: string): RobotsRule {
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
 * Normalizes percent-encoding, so that equal paths compare equal: unreserved characters are decoded, other
 * escapes are in upper case. `*` and `$` in a path are literal characters, so they are escaped; in a pattern
 * they are special.
 */
function normalized(text: string, isPattern: boolean): string {
  // A path has one character per byte as received; a file was decoded as UTF-8.
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
/** RFC 9309 §2.5 requires crawlers to parse at least 500 KiB. */
const TEXT_MAX = 512_000
const LINES_MAX = 20_000
const SAID_MAX = 200
