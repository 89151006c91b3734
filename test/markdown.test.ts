import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import { guideLink } from '../src/shared/guide-link.ts'
import { type Block, parseMarkdown, plainText } from '../src/shared/markdown.ts'

const text = (of: string) => ({ kind: 'text', text: of })
const code = (of: string) => ({ kind: 'code', text: of })

const PAGE = `# The \`policy\` & more

A paragraph with \`code\`, **strong \`code\`**, *emphasis*, [a link](fleet.md#size)
and <https://a.example/x>. 2 * 3 * 4, snake_case_name, \\*no\\*, ![a picture](a.png).

- one
  goes on
- two

  with a paragraph
  1. inner

\`\`\`sh
gatehouse help # no heading

  indented
\`\`\`

| a | b |
|---|--:|
| \`x\\|y\` | |

> A note.

## The policy  more
## Twice
## Twice
`

test('the form of a page is read', async () => {
  const blocks = parseMarkdown(PAGE)
  assert.deepEqual(
    blocks.map(({ kind }) => kind),
    [...['heading', 'paragraph', 'list', 'code', 'table', 'quote'], ...['heading', 'heading', 'heading']],
  )
  assert.deepEqual(blocks[0], {
    kind: 'heading',
    level: 1,
    anchor: 'the-policy--more',
    spans: [text('The '), code('policy'), text(' & more')],
  })
  assert.deepEqual(blocks[1], {
    kind: 'paragraph',
    spans: [
      ...[text('A paragraph with '), code('code'), text(', ')],
      ...[{ kind: 'strong', spans: [text('strong '), code('code')] }, text(', ')],
      ...[{ kind: 'emphasis', spans: [text('emphasis')] }, text(', ')],
      { kind: 'link', href: 'fleet.md#size', spans: [text('a link')] },
      text(' and '),
      { kind: 'link', href: 'https://a.example/x', spans: [text('https://a.example/x')] },
      ...[text('. 2 * 3 * 4, snake_case_name, *no*, '), text('a picture'), text('.')],
    ],
  })
  const paragraph = (of: string) => ({ kind: 'paragraph', spans: [text(of)] })
  assert.deepEqual(blocks[2], {
    kind: 'list',
    isOrdered: false,
    items: [
      [paragraph('one goes on')],
      [
        paragraph('two'),
        paragraph('with a paragraph'),
        { kind: 'list', isOrdered: true, items: [[paragraph('inner')]] },
      ],
    ],
  })
  assert.deepEqual(blocks[3], {
    kind: 'code',
    language: 'sh',
    text: 'gatehouse help # no heading\n\n  indented',
  })
  assert.deepEqual(blocks[4], {
    kind: 'table',
    head: [[text('a')], [text('b')]],
    rows: [[[code('x|y')], []]],
  })
  assert.deepEqual(blocks[5], { kind: 'quote', blocks: [paragraph('A note.')] })
})

test('anchors are those of GitHub, also of equal headings', async () => {
  const anchors = parseMarkdown(PAGE).flatMap((block) => (block.kind === 'heading' ? [block.anchor] : []))
  assert.deepEqual(anchors, ['the-policy--more', 'the-policy--more-1', 'twice', 'twice-1'])
})

test('HTML and half marks are text', async () => {
  for (const line of ['<script>alert(1)</script>', '<b onclick="x">', 'a ** b ` c [d] (e) _f', '[x](a b)'])
    assert.deepEqual(parseMarkdown(line), [{ kind: 'paragraph', spans: [text(line)] }])
})

test('every end is found, wherever a page is cut off', async () => {
  for (let end = 0; end < PAGE.length; end++) {
    const blocks = parseMarkdown(PAGE.slice(0, end))
    assert.ok(blocks.length <= 9)
  }
})

test('nothing of a page of the manual is lost', async () => {
  const pages = globSync('config/{,guide/}*.md')
  assert.ok(pages.length > 2)
  for (const page of pages) {
    const source = readFileSync(page, 'utf8')
    const shown = new Set(parseMarkdown(source).flatMap(wordsOf))
    const lost = split(source.replaceAll(/\]\([^)\s]+\)|^ *```.*$/gm, ' ')).filter((word) => !shown.has(word))
    assert.deepEqual([...new Set(lost)], [], page)
  }
})

function wordsOf(block: Block): string[] {
  switch (block.kind) {
    case 'code':
      return split(block.text)
    case 'list':
      return block.items.flat().flatMap(wordsOf)
    case 'quote':
      return block.blocks.flatMap(wordsOf)
    case 'table':
      return [block.head, ...block.rows].flat().map(plainText).flatMap(split)
    default:
      return split(plainText(block.spans))
  }
}

function split(of: string): string[] {
  return of.match(/[\p{L}\d]{3,}/gu) ?? []
}

test('links between pages of the manual', async () => {
  assert.deepEqual(guideLink('policy.md'), { topic: 'policy', anchor: '' })
  assert.deepEqual(guideLink('policy.md#the-rules'), { topic: 'policy', anchor: 'the-rules' })
  assert.deepEqual(guideLink('../README.md#proxy'), { topic: 'settings', anchor: 'proxy' })
  assert.deepEqual(guideLink('../METRICS.md'), { topic: 'metrics', anchor: '' })
  assert.deepEqual(guideLink('METRICS.md'), { topic: 'metrics', anchor: '' })
  assert.deepEqual(guideLink('guide/policy.md'), { topic: 'policy', anchor: '' })
  for (const other of [
    '../../README.md',
    'README.md',
    '../policy.yaml',
    'https://a.example/policy.md',
    '#here',
    '',
  ])
    assert.equal(guideLink(other), null, other)
})
