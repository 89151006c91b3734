import { join } from 'node:path/posix'
import { stripVTControlCharacters } from 'node:util'
import { guideLink } from '../shared/guide-link.ts'
import { type Block, type Cells, parseMarkdown, plainText, type TextSpan } from '../shared/markdown.ts'
import { wrap } from './help.ts'
import { type Io, paint } from './io.ts'
import { columnsOf } from './table.ts'

/**
 * A page of the manual for a terminal: wrapped to its width, with headings, code and tables set off. `nameOf` is what to
 * type for another page.
 */
export function markdownPage(text: string, io: Io, nameOf = (topic: string) => topic): string {
  const width = Math.min(io.columns, COLUMNS_MAX)
  return `${linesOf(parseMarkdown(text), width, { io, nameOf }).join('\n')}\n`
}

interface Look {
  readonly io: Io
  nameOf(topic: string): string
}

function linesOf(blocks: readonly Block[], width: number, look: Look): string[] {
  return blocks.flatMap((block, index) => {
    const lines = blockLines(block, width, look)
    return index === 0 ? lines : ['', ...lines]
  })
}

function blockLines(block: Block, width: number, look: Look): string[] {
  switch (block.kind) {
    case 'heading':
      return [paint(look.io, block.level === 1 ? ['bold', 'underline'] : 'bold', plainText(block.spans))]
    case 'paragraph':
      return wrapped(inline(block.spans, look), width)
    case 'code':
      return block.text.split('\n').map((line) => `${MARGIN}${paint(look.io, 'cyan', line)}`.trimEnd())
    case 'quote':
      return linesOf(block.blocks, width - 2, look).map((line) => `${paint(look.io, 'dim', '│')} ${line}`)
    case 'list':
      return block.items.flatMap((item, index) => {
        const mark = block.isOrdered ? `${index + 1}. ` : '- '
        const margin = ' '.repeat(mark.length)
        const tight = item.flatMap((each) => blockLines(each, width - mark.length, look))
        return tight.map((line, at) => (at === 0 ? mark : line === '' ? '' : margin) + line)
      })
    case 'table':
      return tableLines([block.head, ...block.rows], width, look)
  }
}

/** As columns. If that leaves no room for the last one, which is wrapped, each row is a list. */
function tableLines(rows: readonly Cells[], width: number, look: Look): string[] {
  const [head = [], ...body] = rows.map((row) => row.map((cell) => inline(cell, look)))
  const widths = head.map((_, column) =>
    Math.max(...[head, ...body].map((row) => shownWidth(row[column] ?? ''))),
  )
  const margin = widths.slice(0, -1).reduce((sum, each) => sum + each + GAP.length, 0)
  if (width - margin < Math.min(widths.at(-1)!, LAST_COLUMN_MIN)) return asLists(head, body, width)
  const titles = head.map((title) => eachWord(title, (word) => paint(look.io, 'bold', word)))
  return [titles, ...body].flatMap((row) => {
    const start = row
      .slice(0, -1)
      .map((cell, column) => cell + ' '.repeat(widths[column]! - shownWidth(cell)) + GAP)
    const [first, ...more] = wrapped(row.at(-1)!, width - margin)
    return [(start.join('') + first).trimEnd(), ...more.map((line) => ' '.repeat(margin) + line)]
  })
}

function asLists(head: Row, body: readonly Row[], width: number): string[] {
  return body.flatMap(([name, ...cells], index) => [
    ...(index === 0 ? [] : ['']),
    name!,
    ...cells.flatMap((cell, column) =>
      cell === ''
        ? []
        : wrapped(`${head[column + 1]}: ${cell}`, width - MARGIN.length).map((line) => MARGIN + line),
    ),
  ])
}

type Row = readonly string[]

function wrapped(text: string, width: number): string[] {
  return wrap(text, width, shownWidth)
}

function shownWidth(text: string): number {
  return columnsOf(stripVTControlCharacters(text))
}

function inline(spans: readonly TextSpan[], look: Look): string {
  return spans.map((span) => spanText(span, look)).join('')
}

function spanText(span: TextSpan, look: Look): string {
  const styled = (style: Parameters<typeof paint>[1], text: string) =>
    eachWord(text, (word) => paint(look.io, style, word))
  switch (span.kind) {
    case 'text':
      return span.text
    case 'code':
      return look.io.colour ? styled('cyan', span.text) : `\`${span.text}\``
    case 'strong':
      return styled('bold', inline(span.spans, look))
    case 'emphasis':
      return styled('italic', inline(span.spans, look))
    case 'link':
      return styled('underline', inline(span.spans, look)) + paint(look.io, 'dim', targetOf(span, look))
  }
}

/** Styles end with each word, so that a line can be broken between any two. */
function eachWord(text: string, styled: (word: string) => string): string {
  return text.replaceAll(/\S+/g, styled)
}

/** Where to read on, unless the text of the link says it. */
function targetOf({ href, spans }: Extract<TextSpan, { kind: 'link' }>, { nameOf }: Look): string {
  const link = guideLink(href)
  if (link !== null) return ` (help ${nameOf(link.topic)})`
  if (href.startsWith('#') || plainText(spans) === href) return ''
  return ` (${HAS_SCHEME.test(href) ? href : join('config/guide', href)})`
}

const HAS_SCHEME = /^[a-z]+:/
const MARGIN = '    '
const GAP = '  '
/** Longer lines are hard to read. */
const COLUMNS_MAX = 100
const LAST_COLUMN_MIN = 24
