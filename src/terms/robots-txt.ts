import { asBytes, Glob } from '../policy/glob.ts'

/**
 * A robots.txt, parsed as in RFC 9309 and as Google's crawlers do. Invalid input is treated as an empty file: everything
 * is allowed.
 */
export class RobotsTxt {
  readonly groups: readonly RobotsGroup[]
  /** Lines that belong to no group, such as `Sitemap`, as written. */
  readonly others: readonly string[]
  readonly #isNormalized: boolean
  /** By token. Agents have a few hundred tokens. */
  readonly #rules = new Map<string, readonly RobotsRule[]>()

  private constructor({ groups, others }: RobotsContent, isNormalized: boolean) {
    this.groups = groups
    this.others = others
    this.#isNormalized = isNormalized
  }

  /**
   * For whole targets, compared as written: of both, only characters beyond ASCII in patterns are encoded. Ignores
   * everything after the first 512,000 bytes, as most crawlers do.
   */
  static parse(text: string | Uint8Array): RobotsTxt {
    return new RobotsTxt(contentOf(text, false), false)
  }

  /**
   * For paths without their queries, which a client may have encoded in another way. The query in an `allow` line is
   * assumed to match.
   */
  static forPaths(text: string | Uint8Array): RobotsTxt {
    return new RobotsTxt(contentOf(text, true), true)
  }

  /** The rule that decides about a path, with its query if it has one; `null`: none does, so it is allowed. */
  ruleFor(token: string, target: string): RobotsRule | null {
    if (target === '/robots.txt') return null
    const text = this.#isNormalized ? normalizedPath(target) : target
    let best: RobotsRule | null = null
    for (const rule of this.rulesOf(token)) {
      if (!rule.glob.matches(text)) continue
      // The longest match wins. If two are equally long, the one that allows wins.
      if (best === null || rule.length > best.length || (rule.length === best.length && rule.allows))
        best = rule
    }
    return best
  }

  /** The line that disallows the target for this token; `null`: it is allowed. */
  disallowing(token: string, target: string): string | null {
    const rule = this.ruleFor(token, target)
    return rule === null || rule.allows ? null : rule.line
  }

  /** The rules of all groups that name the token, or else of the `*` groups. */
  rulesOf(token: string): readonly RobotsRule[] {
    const name = this.#names(token) ? token.toLowerCase() : '*'
    const known = this.#rules.get(name)
    if (known !== undefined) return known
    const rules = this.groupsOf(name).flatMap((group) => group.rules)
    this.#rules.set(name, rules)
    return rules
  }

  groupsOf(token: string): readonly RobotsGroup[] {
    const name = this.#names(token) ? token.toLowerCase() : '*'
    return this.groups.filter(({ tokens }) => tokens.includes(name))
  }

  #names(token: string): boolean {
    const name = token.toLowerCase()
    return this.groups.some(({ tokens }) => tokens.includes(name))
  }
}

export interface RobotsGroup {
  /** As `productToken` has them. */
  readonly tokens: readonly string[]
  readonly rules: readonly RobotsRule[]
  /** Its lines that are no rules, such as `Crawl-delay`, as written. */
  readonly others: readonly string[]
}

export interface RobotsRule {
  readonly allows: boolean
  /** As compared: it matches the beginning of a target, or with `$` at its end all of it. */
  readonly pattern: string
  /** In octets, for precedence. */
  readonly length: number
  readonly glob: Glob
  /** The line as written in the file, and its number from 1. */
  readonly line: string
  readonly lineNumber: number
}

/** The path and query of a URL, as a crawler compares them. */
export function targetOf(url: string): string {
  const [whole = ''] = url.split('#', 1)
  const at = /^(?:\/\/)?(?:[^/?;]*:\/\/)?[^/?;]*/.exec(whole)![0].length
  const target = whole.startsWith('/') && !whole.startsWith('//') ? whole : whole.slice(at)
  return target.startsWith('/') ? target : `/${target}`
}

function contentOf(text: string | Uint8Array, isNormalized: boolean): RobotsContent {
  const bytes = typeof text === 'string' ? asBytes(text) : latin1(text)
  const groups: OpenGroup[] = []
  const others: string[] = []
  let group: OpenGroup | null = null
  let isNaming = false
  const lines = bytes.slice(0, BYTES_MAX).replace(BYTE_ORDER_MARK, '').split(LINE_END, LINES_MAX)
  for (const [index, whole] of lines.entries()) {
    const line = whole.slice(0, LINE_MAX)
    const { name, value } = recordIn(line)
    if (name === 'user-agent') {
      if (!isNaming || group === null) {
        group = { tokens: [], rules: [], others: [] }
        groups.push(group)
      }
      group.tokens.push(productToken(value))
      isNaming = true
    } else if (name === 'allow' || name === 'disallow') {
      isNaming = false
      // A rule before the first group applies to no crawler. An empty rule has no effect.
      if (group === null || value === '') continue
      const written = { line: textOf(line).trim().slice(0, SAID_MAX), lineNumber: index + 1 }
      for (const pattern of patternsOf(name, value, isNormalized))
        group.rules.push({ allows: name === 'allow', ...pattern, ...written })
    } else if (name === 'other') {
      if (group === null || IS_OF_ALL.test(line)) others.push(line.trim())
      else group.others.push(line.trim())
    }
  }
  return { groups, others }
}

interface RobotsContent {
  readonly groups: readonly RobotsGroup[]
  readonly others: readonly string[]
}

interface OpenGroup {
  readonly tokens: string[]
  readonly rules: RobotsRule[]
  readonly others: string[]
}

interface Entry {
  readonly name: 'user-agent' | 'allow' | 'disallow' | 'other' | ''
  readonly value: string
}

/** Crawlers accept a missing colon and frequent misspellings, because what they mean is clear. */
function recordIn(line: string): Entry {
  const content = line.split('#', 1)[0]!.trim()
  const colon = content.indexOf(':')
  const words = colon === -1 ? content.split(/[ \t]+/) : []
  if (colon === -1 && words.length !== 2) return { name: '', value: '' }
  const key = (colon === -1 ? words[0]! : content.slice(0, colon)).trim().toLowerCase()
  const value = colon === -1 ? words[1]! : content.slice(colon + 1).trim()
  if (key === '') return { name: '', value: '' }
  if (USER_AGENT.test(key)) return { name: 'user-agent', value }
  if (key.startsWith('allow')) return { name: 'allow', value }
  return { name: DISALLOW.test(key) ? 'disallow' : 'other', value }
}

/**
 * What is compared of a crawler's name: its first word, in lower case. Some files add a version or more words, which are
 * ignored, and some crawlers have a name of two words.
 */
export function productToken(value: string): string {
  if (/^\*(?:\s|$)/.test(value)) return '*'
  return /^[\w.-]*/.exec(value)![0].toLowerCase()
}

type Pattern = Pick<RobotsRule, 'pattern' | 'length' | 'glob'>

function patternsOf(name: 'allow' | 'disallow', value: string, isNormalized: boolean): readonly Pattern[] {
  const written = isNormalized ? normalized(value) : encoded(value)
  const { length } = written
  const query = isNormalized && name === 'allow' ? written.indexOf('?') : -1
  const pattern = query === -1 ? written : `${written.slice(0, query)}$`
  const patterns = [{ pattern, length, glob: globOf(pattern) }]
  const slash = pattern.lastIndexOf('/')
  // The index page of a folder is the folder.
  if (name === 'allow' && pattern.startsWith('/index.htm', slash)) {
    const folder = `${pattern.slice(0, slash + 1)}$`
    patterns.push({ pattern: folder, length: folder.length, glob: globOf(folder) })
  }
  return patterns
}

function globOf(pattern: string): Glob {
  const isWhole = pattern.endsWith('$')
  const literals = (isWhole ? pattern.slice(0, -1) : pattern).split('*')
  return new Glob(isWhole ? literals : [...literals, ''])
}

/** Escapes characters beyond ASCII, and writes all escapes in upper case. */
function encoded(bytes: string): string {
  return bytes.replaceAll(ESCAPE, (each) => each.toUpperCase()).replaceAll(BEYOND_ASCII, escapedCharacter)
}

/** The same, with unreserved characters decoded, so that equal paths compare equal. */
function normalized(bytes: string): string {
  return decoded(bytes).replaceAll(BEYOND_ASCII, escapedCharacter)
}

/** `*` and `$` in a path are literal characters. In a pattern they are special, and escaped if they are not. */
function normalizedPath(path: string): string {
  return decoded(path).replaceAll(BEYOND_ASCII_OR_SPECIAL, escapedCharacter)
}

function decoded(bytes: string): string {
  return bytes.replaceAll(ESCAPE, (escaped, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return UNRESERVED.test(character) ? character : escaped.toUpperCase()
  })
}

function escapedCharacter(character: string): string {
  return `%${(character.charCodeAt(0) & 0xff).toString(16).toUpperCase().padStart(2, '0')}`
}

function textOf(bytes: string): string {
  return new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)))
}

function latin1(bytes: Uint8Array): string {
  return Array.from(bytes.subarray(0, BYTES_MAX), (byte) => String.fromCharCode(byte)).join('')
}

const LINE_END = /\r\n|\n|\r/
/** Of UTF-8, possibly cut off. */
const BYTE_ORDER_MARK = /^\xef(?:\xbb\xbf?)?/
const USER_AGENT = /^user[- ]?agent/
const DISALLOW = /^(?:dis+al+ow|diasllow|disallaw)/
/** Lines that mean the same wherever they are. */
const IS_OF_ALL = /^\s*(?:site-?map|license|host)\b/i
const ESCAPE = /%([0-9a-f]{2})/gi
const UNRESERVED = /[\w.~-]/
const BEYOND_ASCII = /[^\0-\x7f]/g
const BEYOND_ASCII_OR_SPECIAL = /[^\0-\x7f]|[*$]/g
/** RFC 9309 §2.5 requires crawlers to parse at least 500 KiB. */
const BYTES_MAX = 512_000
const LINES_MAX = 20_000
/** As Google's crawlers have it: longer lines are cut off. */
const LINE_MAX = 2_083 * 8 - 1
const SAID_MAX = 200
