import { byLongestMatch } from './longest-match.ts'
import { isOpenFor, type PublishedTerms, type Use, USES, type Uses } from './published-terms.ts'

/**
 * The licence of the content as RSL 1.0 (Really Simple Licensing), one `content` for each group of paths. A reader takes
 * the most specific URL that matches, as in robots.txt.
 */
export function rslForm({ uses }: PublishedTerms): string {
  const contents = byLongestMatch(uses, () => false).map(({ pattern, value }) => contentOf(pattern, value))
  return `<?xml version="1.0" encoding="UTF-8"?>\n<rsl xmlns="https://rslstandard.org/rsl">\n${contents.join('')}</rsl>\n`
}

function contentOf(url: string, uses: Uses): string {
  const [open, shut] = [
    USES.filter((use) => isOpenFor(uses, use)),
    USES.filter((use) => !isOpenFor(uses, use)),
  ]
  const lines = [
    `  <content url="${escaped(url)}">`,
    '    <license>',
    ...(open.length > 0 ? [`      <permits type="usage">${tokens(open)}</permits>`] : []),
    ...(shut.length > 0 ? [`      <prohibits type="usage">${tokens(shut)}</prohibits>`] : []),
    '    </license>',
    '  </content>',
  ]
  return lines.map((line) => `${line}\n`).join('')
}

function tokens(uses: readonly Use[]): string {
  return uses.map((use) => TOKENS[use]).join(',')
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

const TOKENS: Readonly<Record<Use, string>> = { search: 'search', input: 'ai-input', training: 'ai-train' }
