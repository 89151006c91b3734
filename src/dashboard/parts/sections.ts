/** A value that is shown as it is. */
export type Plain = string | number | boolean

/** Part of a JSON object for people: named facts, and lists of objects as tables. */
export interface DetailPart {
  /** Names from the outside in; empty at the top. */
  readonly title: string
  readonly facts: readonly (readonly [name: string, values: readonly Plain[]])[]
  readonly tables: readonly DetailTable[]
}

export interface DetailTable {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly (readonly Plain[])[])[]
}

/** Takes any JSON object apart. Unknown and empty values are left out. */
export function sectionsOf(value: Readonly<Record<string, unknown>>, title = ''): readonly DetailPart[] {
  const facts: (readonly [string, readonly Plain[]])[] = []
  const tables: DetailTable[] = []
  const inner: DetailPart[] = []
  for (const [key, each] of Object.entries(value)) {
    const name = wordsOf(key)
    const isList = Array.isArray(each)
    if (isList && each.some(isObject)) tables.push(tableOf(name, each))
    else if (!isList && isObject(each))
      inner.push(...sectionsOf(each, title === '' ? name : `${title}: ${name}`))
    else {
      const values = plainIn(each)
      if (values.length > 0) facts.push([name, values])
    }
  }
  const own = facts.length + tables.length > 0 ? [{ title, facts, tables }] : []
  return [...own, ...inner]
}

/** `name_confidence` as `Name confidence`, `ja4h` as `JA4H`. */
export function wordsOf(key: string): string {
  const text = key
    .split('_')
    .map((word) => (SHORT.has(word) || /^ja4/.test(word) ? word.toUpperCase() : word))
    .join(' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function tableOf(title: string, list: readonly unknown[]): DetailTable {
  const objects = list.map((each) => (isObject(each) ? each : { value: each }))
  const keys = [...new Set(objects.flatMap(Object.keys))]
  return {
    title,
    columns: keys.map(wordsOf),
    rows: objects.map((each) => keys.map((key) => plainIn(each[key]))),
  }
}

/** The plain values in anything, without names: a table has one level. */
function plainIn(value: unknown): readonly Plain[] {
  if (value === null || value === undefined || value === '') return []
  if (Array.isArray(value)) return value.flatMap(plainIn)
  if (isObject(value)) return Object.values(value).flatMap(plainIn)
  return [value as Plain]
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Words that people write in capitals. */
const SHORT = new Set(['id', 'ip', 'jwk', 'kid', 'tls', 'url', 'uri'])
