/** Where a caret is in a YAML text. */
export interface TextPlace {
  /** The keys around the caret, from the outside. `ITEM` stands for an item of a list. */
  readonly path: readonly string[]
  /** What has been written of the word at the caret, and where it begins. */
  readonly word: string
  readonly from: number
  /** The word is inside these quotes; empty: none. */
  readonly quote: string
  readonly mayBeKey: boolean
  readonly mayBeValue: boolean
  /** Inside `{…}` or `[…]`. */
  readonly isFlow: boolean
  /** The keys of the mapping around the caret that stand before it. */
  readonly used: readonly string[]
  /** The column of the word, without the `- ` of a list. */
  readonly column: number
}

/**
 * Finds the place of a caret. Only the text before it counts, which is usually unfinished and no valid YAML.
 * `null`: in a comment or in a text of several lines.
 */
export function placeIn(text: string, caret: number): TextPlace | null {
  const before = text.slice(0, caret)
  const reader: Reader = { levels: [], flow: [], blockText: null }
  let start = 0
  for (;;) {
    const end = before.indexOf('\n', start)
    if (end === -1) return lastLine(before, start, reader)
    readLine(before.slice(start, end), reader)
    start = end + 1
  }
}

/** In `path`: an item of a list. */
export const ITEM = '-'

interface Reader {
  /** Keys and items in block form around the current line. */
  readonly levels: Level[]
  /** Open brackets. */
  readonly flow: Bracket[]
  /** The indentation of the key whose text of several lines is read (`|`, `>`); `null`: none. */
  blockText: number | null
}

interface Level {
  readonly indent: number
  readonly name: string
  /** The keys of its mapping so far, with its own. Empty: an item. */
  readonly keys: readonly string[]
}

interface Bracket {
  readonly isMap: boolean
  /** The key whose value is read; `null`: none yet, or a list. */
  key: string | null
  readonly keys: string[]
}

/** Reads a line before that of the caret. */
function readLine(line: string, reader: Reader): void {
  if (isInBlockText(line, reader) || /^\s*(?:#|$)/.test(line)) return
  if (reader.flow.length > 0) {
    readFlow(line, 0, reader.flow)
    return
  }
  const { at } = readStart(line, reader)
  const value = line.slice(at)
  if (/^[|>][+\-\d]*\s*(?:#.*)?$/.test(value)) reader.blockText = reader.levels.at(-1)?.indent ?? -1
  else if (/^[[{]/.test(value)) readFlow(line, at, reader.flow)
}

/** `start`: of the line of the caret. */
function lastLine(text: string, start: number, reader: Reader): TextPlace | null {
  const line = text.slice(start)
  if (isInBlockText(line, reader)) return null
  if (reader.flow.length > 0) return placeInFlow(line, 0, start, reader)
  const { at, hasKey, used } = readStart(line, reader)
  const word = line.slice(at)
  if (/^[[{]/.test(word)) return placeInFlow(line, at, start, reader)
  if (/(?:^|\s)#/.test(word)) return null
  const quote = /^["']/.exec(word)?.[0] ?? ''
  // After the closing quote, nothing follows.
  if (quote !== '' && word.indexOf(quote, 1) !== -1) return null
  return {
    ...{ path: reader.levels.map(({ name }) => name), word: word.slice(quote.length), quote, used },
    ...{ from: start + at + quote.length, column: at },
    ...{ mayBeKey: !hasKey, mayBeValue: true, isFlow: false },
  }
}

function placeInFlow(line: string, at: number, start: number, { levels, flow }: Reader): TextPlace | null {
  const token = readFlow(line, at, flow)
  const innermost = flow.at(-1)
  // In a comment, or after the last bracket was closed.
  if (token === null || innermost === undefined) return null
  const around = flow.flatMap(({ isMap, key }) => (isMap ? (key === null ? [] : [key]) : [ITEM]))
  const mayBeKey = innermost.isMap && innermost.key === null
  return {
    ...{ path: [...levels.map(({ name }) => name), ...around], quote: token.quote },
    ...{ word: line.slice(token.from), from: start + token.from, column: token.from },
    ...{ mayBeKey, mayBeValue: !mayBeKey, isFlow: true, used: mayBeKey ? innermost.keys : [] },
  }
}

/** Lines of a text (`|`, `>`) are indented deeper than its key. */
function isInBlockText(line: string, reader: Reader): boolean {
  if (reader.blockText === null) return false
  const indent = line.search(/\S/)
  if (indent === -1 || indent > reader.blockText) return true
  reader.blockText = null
  return false
}

interface LineStart {
  /** Where the rest of the line begins. */
  readonly at: number
  readonly hasKey: boolean
  readonly used: readonly string[]
}

/** Reads the dashes and the key at the start of a line. */
function readStart(line: string, { levels }: Reader): LineStart {
  let at = line.search(/\S|$/)
  for (let dash = DASH.exec(line.slice(at)); dash !== null; dash = DASH.exec(line.slice(at))) {
    const indent = at
    // A list may stand at the column of its key.
    dropLevels(levels, (level) => level.indent > indent || (level.indent === indent && level.name === ITEM))
    levels.push({ indent, name: ITEM, keys: [] })
    at += dash[0].length
  }
  const sibling = levels.find(({ indent, name }) => indent === at && name !== ITEM)
  dropLevels(levels, ({ indent }) => indent >= at)
  const used = sibling?.keys ?? []
  const [found, double, single, plain] = KEY.exec(line.slice(at)) ?? []
  if (found === undefined) return { at, hasKey: false, used }
  const name = double ?? single ?? plain!
  levels.push({ indent: at, name, keys: [...used, name] })
  return { at: at + found.length, hasKey: true, used: [] }
}

function dropLevels(levels: Level[], isOver: (level: Level) => boolean): void {
  const first = levels.findIndex(isOver)
  if (first !== -1) levels.splice(first)
}

interface Token {
  readonly from: number
  readonly quote: string
}

/** Reads brackets and what is in them. Returns the word that the line ends with, maybe an empty one; `null`: it is a comment. */
function readFlow(line: string, start: number, flow: Bracket[]): Token | null {
  let word = ''
  for (let at = start; ; ) {
    PART.lastIndex = at
    const [part, double, single, mark, plain] = PART.exec(line) ?? []
    if (part === undefined) {
      const from = at + line.slice(at).search(/\S|$/)
      if (line[from] === '#') return null
      const quote = /^["']/.exec(line.slice(from))?.[0] ?? ''
      return { from: from + quote.length, quote }
    }
    // The caret is at the end of the word.
    if (plain !== undefined && PART.lastIndex === line.length)
      return { from: line.length - plain.length, quote: '' }
    at = PART.lastIndex
    if (mark === undefined) word = double ?? single ?? plain ?? ''
    else readMark(mark, word, flow)
    if (flow.length === 0) return { from: line.length, quote: '' }
  }
}

function readMark(mark: string, word: string, flow: Bracket[]): void {
  const innermost = flow.at(-1)
  if (mark === '{' || mark === '[') flow.push({ isMap: mark === '{', key: null, keys: [] })
  else if (mark === '}' || mark === ']') flow.pop()
  else if (innermost === undefined || !innermost.isMap) return
  else if (mark === ',') innermost.key = null
  else if (innermost.key === null) {
    innermost.key = word
    innermost.keys.push(word)
  }
}

const DASH = /^-(?:\s+|$)/
const KEY =
  /^(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|([^\s#&*!|>'"%@`{}[\],-](?:[^#:]*[^\s#:])?))\s*:(?:\s+|$)/
/** In brackets: a text in quotes, a mark, or a plain word, which may have a colon before a letter. */
const PART =
  /\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|([{}[\],]|:(?=\s|$|[{}[\],"'])|(?<=["']):)|((?:[^\s{}[\],:"'#]|:(?![\s{}[\],]|$))(?:[^{}[\],:\s]|:(?![\s{}[\],]|$)|[^\S\n]+(?=[^\s{}[\],:#]))*))/y
