/** Describes where a text stops being JSON. V8 gives the position only in some of its messages. */
export function jsonProblem(text: string): string {
  const at = endOfJson(text)
  const before = text.slice(0, at).split('\n')
  const place = `line ${before.length}, column ${before.at(-1)!.length + 1}`
  return at === text.length
    ? `is not valid JSON: unexpected end at ${place}`
    : `is not valid JSON: unexpected character at ${place}`
}

/** The kind of token that may come next. */
type Expected = 'value' | 'first-value' | 'name' | 'first-name' | 'more'

/** The offset at which the text stops being JSON (RFC 8259). */
function endOfJson(text: string): number {
  const closers: string[] = []
  let expected: Expected = 'value'
  let at = space(text, 0)
  while (at < text.length) {
    const step = next(text, at, expected, closers)
    if (step.expected === null) return step.at
    expected = step.expected
    at = space(text, step.at)
  }
  return at
}

/** Reads one token. `expected` is `null` if the text stops being JSON at `at`. */
function next(
  text: string,
  at: number,
  expected: Expected,
  closers: string[],
): { readonly at: number; readonly expected: Expected | null } {
  const char = text[at]!
  const closer = closers.at(-1)
  if (char === closer && expected !== 'value' && expected !== 'name') {
    closers.pop()
    return { at: at + 1, expected: 'more' }
  }
  if (expected === 'more') {
    if (char !== ',' || closer === undefined) return { at, expected: null }
    return { at: at + 1, expected: closer === '}' ? 'name' : 'value' }
  }
  if (expected === 'name' || expected === 'first-name') {
    const end = matched(STRING, text, at)
    if (end === at) return { at: goodPart(text, at), expected: null }
    const colon = space(text, end)
    return text[colon] === ':' ? { at: colon + 1, expected: 'value' } : { at: colon, expected: null }
  }
  if (char === '{' || char === '[') {
    closers.push(char === '{' ? '}' : ']')
    return { at: at + 1, expected: char === '{' ? 'first-name' : 'first-value' }
  }
  const end = matched(SCALAR, text, at)
  return end === at ? { at: goodPart(text, at), expected: null } : { at: end, expected: 'more' }
}

/** The offset of the error inside an invalid string. */
function goodPart(text: string, at: number): number {
  return text[at] === '"' ? matched(STRING_START, text, at) : at
}

function space(text: string, at: number): number {
  return matched(SPACE, text, at)
}

function matched(form: RegExp, text: string, at: number): number {
  form.lastIndex = at
  return form.test(text) ? form.lastIndex : at
}

const SPACE = /[ \t\r\n]*/y
/** Any character except `"`, `\` and control characters. */
const CHARACTER = '[\\u0020\\u0021\\u0023-\\u005b\\u005d-\\uffff]'
const STRING_START = new RegExp(`"(?:${CHARACTER}|\\\\(?:["\\\\/bfnrt]|u[0-9a-fA-F]{4}))*`, 'y')
const STRING = new RegExp(`${STRING_START.source}"`, 'y')
const NUMBER = '-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?'
const SCALAR = new RegExp(`${STRING.source}|${NUMBER}|true|false|null`, 'y')
