import type { ComponentChildren } from 'preact'
import { guideLink } from '../../../shared/guide-link.ts'
import { type Block, type Cells, plainText, type TextSpan } from '../../../shared/markdown.ts'
import { Copy } from '../../parts/copy.tsx'
import { Preformatted } from '../../parts/preformatted.tsx'

/** A page of the manual. It becomes elements and text, never HTML. */
export function Markdown({ blocks }: { readonly blocks: readonly Block[] }) {
  return blocks.map((block, index) => <BlockView key={index} block={block} />)
}

function BlockView({ block }: { readonly block: Block }) {
  switch (block.kind) {
    case 'heading':
      return <Heading block={block} />
    case 'paragraph':
      return <p>{inline(block.spans)}</p>
    case 'code':
      return (
        <div class="copied">
          <Preformatted label={`Example: ${block.text.split('\n', 1)[0]!}`} text={block.text} />
          <Copy text={block.text} />
        </div>
      )
    case 'quote':
      return (
        <blockquote class="note">
          <Markdown blocks={block.blocks} />
        </blockquote>
      )
    case 'list': {
      const items = block.items.map((item, index) => (
        <li key={index}>
          <Item blocks={item} />
        </li>
      ))
      return block.isOrdered ? <ol>{items}</ol> : <ul>{items}</ul>
    }
    case 'table':
      return <TableView head={block.head} rows={block.rows} />
  }
}

/** The page has the only heading of the first level. */
function Heading({ block }: { readonly block: Extract<Block, { kind: 'heading' }> }) {
  const Level = block.level <= 2 ? 'h2' : block.level === 3 ? 'h3' : 'h4'
  return <Level id={block.anchor}>{inline(block.spans)}</Level>
}

/** Without a paragraph around its first line. */
function Item({ blocks }: { readonly blocks: readonly Block[] }) {
  const [first, ...rest] = blocks
  if (first?.kind !== 'paragraph') return <Markdown blocks={blocks} />
  return (
    <>
      {inline(first.spans)}
      <Markdown blocks={rest} />
    </>
  )
}

function TableView({ head, rows }: { readonly head: Cells; readonly rows: readonly Cells[] }) {
  // Unlike those of the other tables of the page.
  const label = `Table: ${head.map(plainText).join(', ')}; from ${plainText(rows[0]?.[0] ?? [])}`
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section class="scrolled" tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>{cells(head, 'th')}</tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>{cells(row, 'td')}</tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function cells(row: Cells, Cell: 'th' | 'td') {
  return row.map((spans, index) => <Cell key={index}>{inline(spans)}</Cell>)
}

function inline(spans: readonly TextSpan[]): ComponentChildren {
  return spans.map((span, index) => <SpanView key={index} span={span} />)
}

function SpanView({ span }: { readonly span: TextSpan }) {
  switch (span.kind) {
    case 'text':
      return <>{span.text}</>
    case 'code':
      return <code>{span.text}</code>
    case 'strong':
      return <strong>{inline(span.spans)}</strong>
    case 'emphasis':
      return <em>{inline(span.spans)}</em>
    case 'link': {
      const href = addressOf(span.href)
      return href === null ? <span>{inline(span.spans)}</span> : <a href={href}>{inline(span.spans)}</a>
    }
  }
}

/** `null`: a file that the dashboard does not show. */
function addressOf(href: string): string | null {
  if (href.startsWith('#') || /^https?:/.test(href)) return href
  const link = guideLink(href)
  if (link === null) return null
  return `/dashboard/help/${link.topic}${link.anchor === '' ? '' : `#${link.anchor}`}`
}
