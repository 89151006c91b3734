/** A text with its form: what the pages of the manual use of Markdown. */
export type TextSpan =
  | { readonly kind: 'text' | 'code'; readonly text: string }
  | { readonly kind: 'strong' | 'emphasis'; readonly spans: readonly TextSpan[] }
  | { readonly kind: 'link'; readonly href: string; readonly spans: readonly TextSpan[] }

export type Block =
  | {
      readonly kind: 'heading'
      readonly level: number
      /** The anchor that links name, as GitHub makes it. */
      readonly anchor: string
      readonly spans: readonly TextSpan[]
    }
  | { readonly kind: 'paragraph'; readonly spans: readonly TextSpan[] }
  | { readonly kind: 'code'; readonly language: string; readonly text: string }
  | { readonly kind: 'list'; readonly isOrdered: boolean; readonly items: readonly (readonly Block[])[] }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  | { readonly kind: 'table'; readonly head: Cells; readonly rows: readonly Cells[] }

/** The cells of a row. */
export type Cells = readonly (readonly TextSpan[])[]

/**
 * Parses the part of Markdown that the manual is written in: headings, paragraphs, fenced code, lists, quotes and
 * tables. HTML is text here.
 */
export function parseMarkdown(text: string): Block[] {
  return blocksOf(text.split(/\r?\n/), new Map())
}

/** The text without its form. */
export function plainText(spans: readonly TextSpan[]): string {
  return spans.map((span) => ('spans' in span ? plainText(span.spans) : span.text)).join('')
}

type Anchors = Map<string, number>

function blocksOf(lines: readonly string[], anchors: Anchors): Block[] {
  const blocks: Block[] = []
  for (let at = 0; at < lines.length; ) {
    const [block, next] = blockAt(lines, at, anchors)
    if (block !== null) blocks.push(block)
    at = next
  }
  return blocks
}

type Found = readonly [block: Block | null, next: number]

function blockAt(lines: readonly string[], at: number, anchors: Anchors): Found {
  const line = lines[at]!
  if (line.trim() === '') return [null, at + 1]
  const fence = FENCE.exec(line)
  if (fence !== null) return codeAt(lines, at, fence)
  const heading = HEADING.exec(line)
  if (heading !== null) return [headingOf(heading, anchors), at + 1]
  if (QUOTE.test(line)) return quoteAt(lines, at, anchors)
  if (ITEM.test(line)) return listAt(lines, at, anchors)
  if (isTableAt(lines, at)) return tableAt(lines, at)
  const end = endOfParagraph(lines, at)
  return [{ kind: 'paragraph', spans: spansOf(joined(lines.slice(at, end))) }, end]
}

function codeAt(lines: readonly string[], at: number, [, indent, mark, language]: RegExpExecArray): Found {
  let end = at + 1
  while (end < lines.length && lines[end]!.trim() !== mark) end++
  const text = lines.slice(at + 1, end).map((line) => withoutIndent(line, indent!.length))
  return [{ kind: 'code', language: language!.trim(), text: text.join('\n') }, end + 1]
}

function headingOf([, marks, title]: RegExpExecArray, anchors: Anchors): Block {
  const spans = spansOf(title!.trim())
  const name = anchorOf(plainText(spans))
  const before = anchors.get(name) ?? 0
  anchors.set(name, before + 1)
  return {
    kind: 'heading',
    level: marks!.length,
    anchor: before === 0 ? name : `${name}-${before}`,
    spans,
  }
}

function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')
}

function quoteAt(lines: readonly string[], at: number, anchors: Anchors): Found {
  let end = at
  while (end < lines.length && QUOTE.test(lines[end]!)) end++
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ''))
  return [{ kind: 'quote', blocks: blocksOf(inner, anchors) }, end]
}

/** An item holds the lines after it that are indented, also those after an empty line. */
function listAt(lines: readonly string[], at: number, anchors: Anchors): Found {
  const [, indent, mark] = ITEM.exec(lines[at]!)!
  const isOrdered = /\d/.test(mark!)
  const items: string[][] = []
  let end = at
  for (; end < lines.length; end++) {
    const line = lines[end]!
    const [start, itsIndent, itsMark] = ITEM.exec(line) ?? []
    if (itsIndent === indent && /\d/.test(itsMark!) === isOrdered) {
      items.push([line.slice(start!.length)])
      continue
    }
    const isInside =
      line.trim() === '' ? nextIsIndented(lines, end, indent!.length) : indentOf(line) > indent!.length
    const continues = line.trim() !== '' && lines[end - 1]!.trim() !== '' && !startsBlock(lines, end)
    if (!isInside && !continues) break
    items.at(-1)!.push(line)
  }
  const blocks = items.map(([first, ...rest]) => {
    const inner = Math.min(...rest.filter((line) => line.trim() !== '').map(indentOf))
    return blocksOf([first!, ...rest.map((line) => withoutIndent(line, inner))], anchors)
  })
  return [{ kind: 'list', isOrdered, items: blocks }, end]
}

function nextIsIndented(lines: readonly string[], at: number, indent: number): boolean {
  const next = lines.slice(at).find((line) => line.trim() !== '')
  return next !== undefined && (indentOf(next) > indent || (indentOf(next) === indent && ITEM.test(next)))
}

function isTableAt(lines: readonly string[], at: number): boolean {
  return lines[at]!.includes('|') && TABLE_RULE.test(lines[at + 1] ?? '')
}

function tableAt(lines: readonly string[], at: number): Found {
  let end = at + 2
  while (end < lines.length && lines[end]!.includes('|') && lines[end]!.trim() !== '') end++
  const [head, ...rows] = [lines[at]!, ...lines.slice(at + 2, end)].map(cellsOf)
  return [{ kind: 'table', head: head!, rows }, end]
}

function cellsOf(line: string): Cells {
  const inner = line.trim().replace(/^\|/, '').replace(/\|$/, '')
  return inner.split(/(?<!\\)\|/).map((cell) => spansOf(cell.trim().replaceAll('\\|', '|')))
}

function endOfParagraph(lines: readonly string[], at: number): number {
  let end = at + 1
  while (end < lines.length && lines[end]!.trim() !== '' && !startsBlock(lines, end)) end++
  return end
}

function startsBlock(lines: readonly string[], at: number): boolean {
  return BLOCK_STARTS.some((start) => start.test(lines[at]!)) || isTableAt(lines, at)
}

function joined(lines: readonly string[]): string {
  return lines.map((line) => line.trim()).join(' ')
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length
}

function withoutIndent(line: string, columns: number): string {
  return line.slice(Math.min(columns, indentOf(line)))
}

/** `isLinked`: inside a link, where there is no other one. */
function spansOf(text: string, isLinked = false): TextSpan[] {
  const spans: TextSpan[] = []
  let from = 0
  const plain = (to: number) => {
    if (to > from) spans.push({ kind: 'text', text: text.slice(from, to).replaceAll(ESCAPED, '$1') })
  }
  for (const match of text.matchAll(SPAN)) {
    const span = spanOf(match, isLinked)
    if (span === null) continue
    plain(match.index)
    spans.push(span)
    from = match.index + match[0].length
  }
  plain(text.length)
  return spans
}

/** `null`: it is text. A picture is shown as its description. */
function spanOf([whole, ...groups]: RegExpExecArray, isLinked: boolean): TextSpan | null {
  const [, code, label, href, url, strong, , emphasis] = groups
  if (code !== undefined) return { kind: 'code', text: code.replace(/^ (.*) $/, '$1') }
  if (strong !== undefined) return { kind: 'strong', spans: spansOf(strong, isLinked) }
  if (emphasis !== undefined) return { kind: 'emphasis', spans: spansOf(emphasis, isLinked) }
  if (label !== undefined && whole.startsWith('!')) return { kind: 'text', text: label }
  if (isLinked) return null
  if (url !== undefined) return { kind: 'link', href: url, spans: [{ kind: 'text', text: url }] }
  return label === undefined ? null : { kind: 'link', href: href!, spans: spansOf(label, true) }
}

const FENCE = /^(\s*)(```|~~~)([^`]*)$/
const HEADING = /^(#{1,6})\s+(.+?)(?:\s+#+)?$/
const QUOTE = /^> ?/
const ITEM = /^(\s*)([-*+]|\d{1,3}[.)])\s+/
const TABLE_RULE = /^\s*\|?(?:\s*:?-+:?\s*\|)+\s*(?::?-+:?\s*)?$/
const BLOCK_STARTS = [FENCE, HEADING, QUOTE, ITEM]
const ESCAPED = /\\([!-/:-@[-`{-~])/g
/** A backslash before a mark makes it text. */
const SPAN = new RegExp(
  [
    String.raw`\\[!-/:-@[-\x60{-~]`,
    String.raw`(\x60+)(.+?)(?<!\x60)\1(?!\x60)`,
    String.raw`!?\[((?:\x60[^\x60]*\x60|[^\]\x60])*)\]\(([^()\s]+)\)`,
    String.raw`<(https?://[^>\s]+)>`,
    String.raw`\*\*((?:[^*]|\*(?!\*))+)\*\*`,
    String.raw`(?<![\w*])([*_])(?![\s*_])([^*_\x60]+?)(?<!\s)\7(?![\w*])`,
  ].join('|'),
  'g',
)
