import type { CorpusRow } from './corpus.ts'
import { HEADER } from './index/header-index.ts'
import { namesOf, plainName, type Software } from './software.ts'

/** The names of recorded clients, and the words by which they name themselves. */
export class NameBook {
  readonly #list: ReadonlyMap<string, Software>
  readonly #words = new Map<string, readonly string[]>()

  constructor(list: readonly Software[]) {
    this.#list = new Map(
      list.flatMap((software) => namesOf(software).map((name) => [plainName(name), software])),
    )
  }

  /** Compares with the id, the name and the aliases, in any spelling. */
  isCalled(id: string, client: string): boolean {
    const software = this.#list.get(plainName(id))
    return software !== undefined && namesOf(software).some((name) => plainName(name) === plainName(client))
  }

  /**
   * Whether a connection names its client: a header's name or value contains a name that the recording or the
   * list has for it. Signatures are not used. Headers that the server or the URL determines are ignored.
   */
  namesItself({ client, requests }: CorpusRow): boolean {
    const words = this.#wordsOf(client)
    return requests.some(({ head }) => {
      for (let i = 0; i < head.rawHeaders.length; i += 2) {
        const name = head.rawHeaders[i]!.toLowerCase()
        if (OF_THE_SERVER.has(name)) continue
        if (!Object.hasOwn(HEADER, name) && says(head.rawHeaders[i]!, words)) return true
        if (says(head.rawHeaders[i + 1]!, words)) return true
      }
      return false
    })
  }

  #wordsOf(client: string): readonly string[] {
    const known = this.#words.get(client)
    if (known !== undefined) return known
    const software = this.#list.get(plainName(client))
    const names = [client, ...(software === undefined ? [] : namesOf(software))]
    const words = [...new Set(names.flatMap(tellingWords))]
    this.#words.set(client, words)
    return words
  }
}

/**
 * Strips common words from both ends of a name: `OpenAI Node SDK` becomes `openai`. The scope of
 * `@ai-sdk/openai` is a word too.
 */
function tellingWords(name: string): readonly string[] {
  const scope = /^@([^/]+)\//.exec(name)?.[1]
  return [name, ...(scope === undefined ? [] : [scope])]
    .map((each) =>
      tellingPart(
        plainName(each)
          .split('-')
          .filter((word) => word !== ''),
      ).join(''),
    )
    .filter((word) => word.length >= WORD_LENGTH_MIN)
}

function tellingPart(words: readonly string[]): readonly string[] {
  const from = words.findIndex((word) => !COMMON.has(word))
  const to = words.findLastIndex((word) => !COMMON.has(word))
  return from === -1 ? words : words.slice(from, to + 1)
}

/** Whether a word of the text starts with one of `words`, ignoring separators. */
function says(text: string, words: readonly string[]): boolean {
  const parts = text.match(PART) ?? []
  return parts.some((_part, i) => {
    const rest = parts
      .slice(i, i + PARTS_MAX)
      .join('')
      .toLowerCase()
    return words.some((word) => rest.startsWith(word))
  })
}

/** `AzureOpenAI` has two parts. */
const PART = /[A-Z]*[a-z]+|[A-Z]+|[0-9]+/g
const PARTS_MAX = 8
const WORD_LENGTH_MIN = 3
/** Words for the kind of a client or its runtime. */
const COMMON: ReadonlySet<string> = new Set([
  'ai',
  'api',
  'cli',
  'client',
  'core',
  'for',
  'js',
  'lib',
  'llm',
  'node',
  'npm',
  'of',
  'python',
  'sdk',
  'synthetic',
  'the',
  'typescript',
  'ts',
  'v2',
])
const OF_THE_SERVER: ReadonlySet<string> = new Set([
  ':authority',
  ':path',
  ':method',
  ':scheme',
  'host',
  'origin',
  'referer',
  'cookie',
])
