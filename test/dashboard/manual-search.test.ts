import assert from 'node:assert/strict'
import { test } from 'tap'
import { Guide } from '../../src/shared/guide.ts'
import { searchManual, sectionsOf } from '../../src/dashboard/pages/help/manual-search.ts'

const FERRY = `# The ferry

It crosses the river.

## Timetable

| hour | place |
|---|---|
| 7 | north bank |

### Sundays

- None, but **special** trips.

\`\`\`sh
gatehouse up
\`\`\`
`
const SECTIONS = sectionsOf('ferry', 'The ferry', FERRY)

test('a page becomes its sections, with the text of everything in them', async () => {
  assert.deepEqual(
    SECTIONS.map(({ heading, anchor, text }) => [heading, anchor, text]),
    [
      ['The ferry', null, 'It crosses the river.'],
      ['Timetable', 'timetable', 'hour place 7 north bank'],
      ['Sundays', 'sundays', 'None, but special trips. gatehouse up'],
    ],
  )
})

test('sections need all the words, and words in headings count most', async () => {
  const found = (query: string) => searchManual(SECTIONS, query).map(({ section }) => section.heading)
  assert.deepEqual(found('NORTH bank'), ['Timetable'])
  assert.deepEqual(found('ferry'), ['The ferry', 'Timetable', 'Sundays'])
  assert.deepEqual(found('ferry special'), ['Sundays'])
  assert.deepEqual(found('ferry unknown'), [])
  assert.deepEqual(found('  '), [])
  assert.deepEqual(found('('), [])
})

test('an excerpt is around the first word, with all words marked', async () => {
  const long = sectionsOf('a', 'A', `# A\n\n${'word '.repeat(100)}the Needle (here) ${'word '.repeat(100)}`)
  const [{ excerpt } = { excerpt: [] }] = searchManual(long, 'needle (here)')
  assert.deepEqual(
    excerpt.filter(({ isFound }) => isFound).map(({ text }) => text),
    ['Needle', '(here)'],
  )
  const text = excerpt.map((part) => part.text).join('')
  assert.match(text, /^… word .* word …$/)
  assert.ok(text.length < 240, `${text.length}`)
})

test('every section of the manual is found by its own heading', async () => {
  const guide = new Guide()
  const all = guide.pages.flatMap((page) => sectionsOf(page.topic, page.title, guide.text(page)))
  assert.ok(all.length > 150, `${all.length}`)
  for (const { topic, anchor, heading } of all) {
    const found = searchManual(
      all.filter((each) => each.topic === topic),
      heading,
    )
    assert.ok(
      found.some(({ section }) => section.anchor === anchor),
      `${topic} ${heading}`,
    )
  }
})
