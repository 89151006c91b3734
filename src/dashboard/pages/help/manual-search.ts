import { type Block, parseMarkdown, plainText } from '../../../shared/markdown.ts'

/** What stands below one heading of the manual. */
export interface ManualSection {
  readonly topic: string
  /** The title of the page. */
  readonly page: string
  readonly heading: string
  /** `null`: the beginning of the page. */
  readonly anchor: string | null
  readonly text: string
}

export interface SectionFound {
  readonly section: ManualSection
  /** The text around the first word that was found, in parts. */
  readonly excerpt: readonly { readonly text: string; readonly isFound: boolean }[]
}

export function sectionsOf(topic: string, page: string, markdown: string): readonly ManualSection[] {
  const sections: { heading: string; anchor: string | null; parts: string[] }[] = [
    { heading: page, anchor: null, parts: [] },
  ]
  for (const block of parseMarkdown(markdown)) {
    if (block.kind === 'heading' && block.level > 1)
      sections.push({ heading: plainText(block.spans), anchor: block.anchor, parts: [] })
    else if (block.kind !== 'heading') sections.at(-1)!.parts.push(textOf(block))
  }
  return sections.map(({ heading, anchor, parts }) => ({
    topic,
    page,
    heading,
    anchor,
    text: parts.join(' '),
  }))
}

/** The sections that have all the words, those with the words in their heading first. */
export function searchManual(sections: readonly ManualSection[], query: string): readonly SectionFound[] {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  if (words.length === 0) return []
  return sections
    .map((section) => ({ section, score: scoreOf(section, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, FOUND_MAX)
    .map(({ section }) => ({ section, excerpt: excerptOf(section.text, words) }))
}

/** 0: a word is missing. */
function scoreOf({ page, heading, text }: ManualSection, words: readonly string[]): number {
  const [title, head, body] = [page.toLowerCase(), heading.toLowerCase(), text.toLowerCase()]
  let score = 0
  for (const word of words) {
    const found =
      (head.includes(word) ? 4 : 0) + (title.includes(word) ? 2 : 0) + (body.includes(word) ? 1 : 0)
    if (found === 0) return 0
    score += found
  }
  return score
}

function excerptOf(text: string, words: readonly string[]): SectionFound['excerpt'] {
  const lower = text.toLowerCase()
  const places = words.map((word) => lower.indexOf(word)).filter((at) => at !== -1)
  const first = places.length === 0 ? 0 : Math.min(...places)
  const start = first <= BEFORE ? 0 : text.lastIndexOf(' ', first - BEFORE) + 1
  const isCut = start + LENGTH < text.length
  const cut = text.slice(start, isCut ? text.lastIndexOf(' ', start + LENGTH) : text.length)
  const parts = marked(cut, words)
  const before = start > 0 ? [{ text: '… ', isFound: false }] : []
  const after = isCut ? [{ text: ' …', isFound: false }] : []
  return [...before, ...parts, ...after].filter((part) => part.text !== '')
}

function marked(text: string, words: readonly string[]): SectionFound['excerpt'] {
  const lower = text.toLowerCase()
  const parts: { text: string; isFound: boolean }[] = []
  for (let at = 0; at < text.length; ) {
    const found = words
      .map((word) => ({ at: lower.indexOf(word, at), length: word.length }))
      .filter((place) => place.at !== -1)
    const next = found.reduce((a, b) => (b.at < a.at ? b : a), { at: text.length, length: 0 })
    parts.push({ text: text.slice(at, next.at), isFound: false })
    parts.push({ text: text.slice(next.at, next.at + next.length), isFound: true })
    at = next.at + next.length
  }
  return parts
}

function textOf(block: Block): string {
  switch (block.kind) {
    case 'heading':
    case 'paragraph':
      return plainText(block.spans)
    case 'code':
      return block.text
    case 'list':
      return block.items.map((item) => item.map(textOf).join(' ')).join(' ')
    case 'quote':
      return block.blocks.map(textOf).join(' ')
    case 'table':
      return [block.head, ...block.rows].map((row) => row.map(plainText).join(' ')).join(' ')
  }
}

const FOUND_MAX = 30
const BEFORE = 60
const LENGTH = 220
