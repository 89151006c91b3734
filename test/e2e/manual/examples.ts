import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'

/** A code block of the manual. */
export interface Example {
  /** The heading above it. */
  readonly section: string
  /** `sh`, `yaml` and so on; empty if the fence names none. */
  readonly language: string
  readonly text: string
}

export const GUIDE = 'config/guide'

/** The README and the pages of the guide, in the order of its index. */
export function manualPages(): readonly string[] {
  const index = readFileSync(`${GUIDE}/README.md`, 'utf8')
  const listed = [...index.matchAll(/^\| \[[^\]]*\]\(([\w-]+\.md)\)/gm)].map(([, name]) => `${GUIDE}/${name}`)
  const there = globSync(`${GUIDE}/*.md`).filter((file) => file !== `${GUIDE}/README.md`)
  assert.deepEqual(listed.toSorted(), there.toSorted(), `${GUIDE}/README.md lists each page once`)
  return ['README.md', ...listed]
}

/** All code blocks of a page, in their order. */
export function examplesOf(page: string): readonly Example[] {
  const found: Example[] = []
  let section = ''
  let open: { language: string; lines: string[] } | null = null
  for (const line of readFileSync(page, 'utf8').split('\n')) {
    const [, language] = /^```(.*)$/.exec(line) ?? []
    if (open === null && language !== undefined) open = { language, lines: [] }
    else if (open !== null && language !== undefined) {
      found.push({ section, language: open.language, text: `${open.lines.join('\n')}\n` })
      open = null
    } else if (open !== null) open.lines.push(line)
    else section = /^#+ (.*)$/.exec(line)?.[1] ?? section
  }
  assert.equal(open, null, `${page} ends within an example`)
  return found
}

/** The one example of a page that contains this text. */
export function exampleWith(page: string, mark: string): string {
  const all = examplesOf(page).filter(({ text }) => text.includes(mark))
  assert.equal(all.length, 1, `${page} has ${all.length} examples with ${mark}`)
  return all[0]!.text
}
