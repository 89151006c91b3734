import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { test } from 'tap'

const PAGES = globSync('**/*.md', {
  exclude: (name) => /(?:^|\/)(?:node_modules|dist|\.git|\.tap)$/.test(name),
})
  .concat(globSync('.github/*.md'))
  .toSorted()

test('every link and anchor of every page resolves', async () => {
  assert.ok(PAGES.includes('README.md') && PAGES.includes('.github/SECURITY.md'), PAGES.join(' '))
  const links = PAGES.flatMap((page) => linksIn(page).map((link) => ({ page, ...link })))
  assert.ok(links.length > 120, `${links.length} links were found`)
  const broken = links.flatMap(({ page, line, target }) => {
    const problem = problemOf(page, target)
    return problem === null ? [] : [`${page}:${line}: ${target}: ${problem}`]
  })
  assert.deepEqual(broken, [])
})

test('a page of the guide has at most 250 lines and README.md 300', async () => {
  for (const page of [...PAGES.filter((page) => page.startsWith('config/guide/')), 'README.md']) {
    const lines = readFileSync(page, 'utf8').split('\n').length - 1
    assert.ok(lines <= (page === 'README.md' ? 300 : 250), `${page} has ${lines} lines`)
  }
})

test('a page of the guide has an example in its first screen', async () => {
  const pages = PAGES.filter((page) => page.startsWith('config/guide/') && !page.endsWith('/README.md'))
  for (const page of pages) {
    const at = readFileSync(page, 'utf8')
      .split('\n')
      .findIndex((line) => line.startsWith('```'))
    assert.ok(at >= 0 && at < FIRST_SCREEN_LINES, `${page}: its first example is in line ${at + 1}`)
  }
})

test('anchors are those that GitHub makes', async () => {
  const text =
    '# A `b` (c), d\n\n## Where it is: x_y-z\n\n## Same\n\n## Same\n\n```sh\n# not a heading\n```\n'
  assert.deepEqual([...anchorsIn(text)], ['a-b-c-d', 'where-it-is-x_y-z', 'same', 'same-1'])
})

const FIRST_SCREEN_LINES = 25

function problemOf(page: string, target: string): string | null {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? page : normalize(join(dirname(page), path))
  if (!existsSync(file)) return 'the file does not exist'
  if (anchor === undefined) return null
  if (statSync(file).isDirectory() || !file.endsWith('.md')) return 'only pages have anchors'
  return anchorsIn(readFileSync(file, 'utf8')).has(anchor) ? null : 'the page has no such heading'
}

/** The links to files and headings, by line; those to other sites are left out. */
function linksIn(page: string): readonly { readonly line: number; readonly target: string }[] {
  return proseOf(readFileSync(page, 'utf8')).flatMap((text, at) =>
    [...text.replaceAll(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target]) => ({ line: at + 1, target: target! }))
      .filter(({ target }) => !/^[a-z]+:/.test(target)),
  )
}

function anchorsIn(text: string): ReadonlySet<string> {
  const anchors = new Set<string>()
  for (const line of proseOf(text)) {
    const [, heading] = /^#+ (.*)$/.exec(line) ?? []
    if (heading === undefined) continue
    const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = words.replaceAll(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-')
    let own = anchor
    for (let again = 1; anchors.has(own); again++) own = `${anchor}-${again}`
    anchors.add(own)
  }
  return anchors
}

/** The lines of a page, empty within code blocks. */
function proseOf(text: string): readonly string[] {
  let isCode = false
  return text.split('\n').map((line) => {
    const isFence = /^\s*```/.test(line)
    if (isFence) isCode = !isCode
    return isCode || isFence ? '' : line
  })
}
