/** What the linter of texts finds, by line. */
export interface Finding {
  readonly line: number
  readonly found: string
  readonly advice: string
}

interface Rule {
  readonly pattern: RegExp
  readonly advice: string
  /** Not applied to documents. */
  readonly isOnlyForCode?: true
}

/**
 * Idioms that are hard to read for engineers whose first language is not English. The patterns are applied to whole
 * lines: comments, messages and names alike.
 */
export const IDIOMS: readonly Rule[] = [
  {
    pattern: /\b(?:who(?:so)?ever|whomever|whom|nobody|somebody|anybody)\b/i,
    advice: 'name the subject: the client, the caller, an admin, no one',
  },
  {
    pattern: /\bwho (?:says|said|asks|asked|sends|sent|comes|came|signs|has|knows)\b/i,
    advice: 'name the subject: the client that asks, the signer',
  },
  { pattern: /\bwhat (?:is|was|has) (?:none|no|not|there)\b/i, advice: 'name the thing: an invalid value' },
  {
    pattern: /(?<!\bthere )\bis no (?!longer|more)[a-z]+/i,
    advice: 'say it directly: unknown, invalid, not a …',
  },
  { pattern: /\b(?:is|are) none\b/i, advice: 'say it directly: missing, invalid, empty' },
  { pattern: /\b(?:says?|said) to be\b/i, advice: 'claims to be' },
  { pattern: /\bheld for\b/i, advice: 'is classified as' },
  { pattern: /\bbe had\b/i, advice: 'is available, can be fetched' },
  {
    pattern: /\b(?:he|his|him|himself|she|hers?|herself)\b/i,
    advice: 'a program is "it", a person is "they"',
  },
  { pattern: /\bthat one\b/i, advice: 'name it' },
  { pattern: /\ball that\b/i, advice: 'everything, or name it' },
  { pattern: /\bin the place of\b/i, advice: 'instead of' },
  { pattern: /\bby way of\b/i, advice: 'through, with' },
  {
    pattern: /\bwhat (?:came|comes|has come|becomes?|became) of\b/i,
    advice: 'the result, the outcome, by outcome',
    isOnlyForCode: true,
  },
  {
    pattern: /\b(?:made|loaded|read|asked) anew\b/i,
    advice: 'again, renewed, reloaded',
    isOnlyForCode: true,
  },
  {
    pattern: /["'`]takes an? (?:whole|number|list|string|object|text|URL)\b/,
    advice: 'must be a …',
    isOnlyForCode: true,
  },
  {
    pattern: /\bwill disappoint\b/i,
    advice: 'will cause trouble, clients will refuse it',
    isOnlyForCode: true,
  },
]

/** Longer ones belong at the head of a file, or the code needs a better name. */
export const COMMENT_LINES_MAX = 5

export function idiomsIn(text: string, isCode = true): Finding[] {
  const rules = IDIOMS.filter(({ isOnlyForCode = false }) => isCode || !isOnlyForCode)
  return text.split('\n').flatMap((content, index) =>
    rules.flatMap(({ pattern, advice }) => {
      const found = pattern.exec(content)?.[0]
      return found === undefined ? [] : [{ line: index + 1, found, advice }]
    }),
  )
}

/** Comments that are too long, in TypeScript; the first comment of a file may be of any length. */
export function longCommentsIn(source: string): Finding[] {
  const findings: Finding[] = []
  const lines = source.split('\n')
  let comments = 0
  for (let at = 0; at < lines.length; at++) {
    const length = commentLength(lines, at)
    if (length === 0) continue
    comments++
    if (length > COMMENT_LINES_MAX && comments > 1)
      findings.push({
        line: at + 1,
        found: `a comment of ${length} lines`,
        advice: `at most ${COMMENT_LINES_MAX}, except at the head of the file`,
      })
    at += length - 1
  }
  return findings
}

/** Of the comment that begins in this line, without the lines of its delimiters; 0 where none begins. */
function commentLength(lines: readonly string[], from: number): number {
  const first = lines[from]!.trim()
  let at = from
  if (first.startsWith('/*')) {
    while (at < lines.length && !lines[at]!.includes('*/')) at++
    return Math.max(1, at - from - 1)
  }
  while (at < lines.length && lines[at]!.trim().startsWith('//')) at++
  return at - from
}

/** `area: imperative`, as CONTRIBUTING.md has it; `null`: nothing is wrong with it. */
export function subjectProblem(subject: string): string | null {
  if (subject.length > SUBJECT_LENGTH_MAX)
    return `has ${subject.length} characters, at most ${SUBJECT_LENGTH_MAX}`
  if (subject.includes(',')) return 'has a comma'
  if (!/^[\w./-]+: \S/.test(subject)) return 'is not of the form "area: imperative"'
  return null
}

const SUBJECT_LENGTH_MAX = 60
