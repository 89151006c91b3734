/**
 * The line at which a text stops being valid JSON; `null`: it is valid. Error messages of browsers do not
 * always contain a position.
 */
export function lineOfProblem(text: string): number | null {
  const offset = offsetOfProblem(text)
  return offset === null ? null : text.slice(0, offset).split('\n').length
}

function offsetOfProblem(text: string): number | null {
  const open: ('{' | '[')[] = []
  let expected: Expected = 'value'
  for (let at = 0; ; ) {
    TOKEN.lastIndex = at
    const found = TOKEN.exec(text)
    const start = at + (/^\s*/.exec(text.slice(at))?.[0].length ?? 0)
    if (found === null) return start === text.length && expected === 'end' ? null : start
    const next = after(found[1]!, expected, open)
    if (next === null) return start
    expected = next
    at = TOKEN.lastIndex
  }
}

type Expected = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | ', or close' | 'end'

/** The expected next token; `null`: this token is not allowed here. */
function after(token: string, expected: Expected, open: ('{' | '[')[]): Expected | null {
  const closed = (): Expected => {
    open.pop()
    return open.length === 0 ? 'end' : ', or close'
  }
  if (token === ':') return expected === ':' ? 'value' : null
  if (token === ',') {
    if (expected !== ', or close') return null
    return open.at(-1) === '{' ? 'name' : 'value'
  }
  if (token === '}')
    return expected === 'name or }' || (expected === ', or close' && open.at(-1) === '{') ? closed() : null
  if (token === ']')
    return expected === 'value or ]' || (expected === ', or close' && open.at(-1) === '[') ? closed() : null
  if (expected === 'name' || expected === 'name or }') return token.startsWith('"') ? ':' : null
  if (expected !== 'value' && expected !== 'value or ]') return null
  if (token === '{' || token === '[') {
    open.push(token)
    return token === '{' ? 'name or }' : 'value or ]'
  }
  return open.length === 0 ? 'end' : ', or close'
}

const TOKEN =
  /\s*([{}[\],:]|"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/uy
