import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { guideLink } from './guide-link.ts'
import { parseMarkdown, plainText } from './markdown.ts'
import { CONFIG_FOLDER } from './package-files.ts'

/** A page of the manual. */
export interface GuidePage {
  /** Its name: `policy` of config/guide/policy.md. */
  readonly topic: string
  readonly file: string
  readonly title: string
  readonly about: string
}

/** The manual: config/guide/ in the order of its list of pages, then the lists of settings and metrics. */
export class Guide {
  readonly pages: readonly GuidePage[]

  constructor(folder = CONFIG_FOLDER) {
    const guide = join(folder, 'guide')
    const listed = new Map(rowsOf(readFileSync(join(guide, INDEX), 'utf8')))
    const names = readdirSync(guide).filter((name) => name.endsWith('.md') && name !== INDEX)
    const found = names.map((name) => name.slice(0, -'.md'.length))
    const topics = new Set([
      ...[...listed.keys()].filter((topic) => found.includes(topic)),
      ...found.toSorted(),
    ])
    this.pages = [
      ...[...topics].map((topic) => pageOf(topic, join(guide, `${topic}.md`), listed.get(topic) ?? '')),
      pageOf('settings', join(folder, 'README.md'), 'every setting, with its default'),
      pageOf('metrics', join(folder, 'METRICS.md'), 'every metric, with its labels'),
    ]
  }

  page(topic: string): GuidePage | null {
    return this.pages.find((page) => page.topic === topic) ?? null
  }

  text({ file }: GuidePage): string {
    return readFileSync(file, 'utf8')
  }

  /** The headings below its title. */
  headings(page: GuidePage): readonly { readonly text: string; readonly anchor: string }[] {
    return parseMarkdown(this.text(page)).flatMap((block) =>
      block.kind === 'heading' && block.level > 1
        ? [{ text: plainText(block.spans), anchor: block.anchor }]
        : [],
    )
  }

  /** Topics of pages with a heading that contains this word. */
  topicsAbout(word: string): readonly string[] {
    if (word.length < WORD_LENGTH_MIN) return []
    const wanted = word.toLowerCase()
    const isAbout = (page: GuidePage) =>
      headings(this.text(page)).some((title) => title.toLowerCase().includes(wanted))
    return this.pages.filter(isAbout).map(({ topic }) => topic)
  }
}

/** Each topic that a row of the list links, and what the row says of it. */
function rowsOf(index: string): (readonly [topic: string, about: string])[] {
  const rows = parseMarkdown(index).flatMap((block) => (block.kind === 'table' ? block.rows : []))
  return rows.flatMap(([page = [], about = []]) => {
    const link = page.find((span) => span.kind === 'link')
    const topic = link === undefined ? undefined : guideLink(link.href)?.topic
    return topic === undefined ? [] : [[topic, plainText(about)] as const]
  })
}

function pageOf(topic: string, file: string, about: string): GuidePage {
  const [title = topic] = headings(readFileSync(file, 'utf8').slice(0, BEGINNING_LENGTH))
  return { topic, file, title, about }
}

function headings(text: string): string[] {
  return parseMarkdown(text).flatMap((block) => (block.kind === 'heading' ? [plainText(block.spans)] : []))
}

/** Shorter ones are part of most headings. */
const WORD_LENGTH_MIN = 3
const INDEX = 'README.md'
/** Holds the title. */
const BEGINNING_LENGTH = 512
