import type { CorpusRequest, CorpusRow } from '../known/corpus.ts'

/**
 * Finds what a browser connection shows that no recorded person's connection shows. It is independent of the
 * classifier. A connection is compared with those of people who use the same browser in the same version, by
 * User-Agent.
 */
export class PeopleShown {
  readonly #browsers = new Map<string, Browser>()

  constructor(people: readonly CorpusRow[]) {
    for (const row of people) {
      const name = browserOf(row)
      if (name === null) continue
      const browser = this.#browsers.get(name) ?? new Browser()
      this.#browsers.set(name, browser)
      browser.add(row)
    }
  }

  /**
   * `null`: nothing conclusive, and no person was recorded with this browser, so the connection cannot be
   * compared.
   */
  differencesOf(row: CorpusRow): readonly string[] | null {
    if (row.requests.some(saysHeadless)) return ['headless']
    const name = browserOf(row)
    if (name === null) return ['no browser in the User-Agent']
    return this.#browsers.get(name)?.differencesOf(row) ?? null
  }
}

/** What people's connections with one browser have shown. */
class Browser {
  readonly #hellos = new Set<string>()
  readonly #http2 = new Set<string>()
  readonly #greaseBrands = new Set<string>()
  /** By request kind: method, version and fetch metadata. */
  readonly #requests = new Map<string, Requests>()

  add(row: CorpusRow): void {
    this.#hellos.add(helloOf(row))
    if (row.print.http2 !== null) this.#http2.add(row.print.http2)
    for (const request of row.requests) {
      for (const brand of greaseBrands(request)) this.#greaseBrands.add(brand)
      const sort = sortOf(request)
      const known = this.#requests.get(sort) ?? new Requests()
      this.#requests.set(sort, known)
      known.add(ownHeaders(request))
    }
  }

  differencesOf(row: CorpusRow): readonly string[] {
    const found = new Set<string>()
    if (!this.#hellos.has(helloOf(row))) found.add('hello')
    if (row.print.http2 !== null && !this.#http2.has(row.print.http2)) found.add('HTTP/2')
    for (const request of row.requests) {
      if (greaseBrands(request).some((brand) => !this.#greaseBrands.has(brand))) found.add('brand')
      const known = this.#requests.get(sortOf(request))
      if (known === undefined) continue
      const names = ownHeaders(request)
      if (known.lacks(names)) found.add('header missing')
      if (known.isOrderedOtherwise(names)) found.add('header order')
    }
    return [...found]
  }
}

/** The headers of people's requests of one kind that the browser itself sets. */
class Requests {
  #always: readonly string[] | null = null
  /** Pairs of names, in the order sent. */
  readonly #pairs = new Set<string>()

  add(names: readonly string[]): void {
    this.#always = (this.#always ?? names).filter((name) => names.includes(name))
    for (const pair of pairsOf(names)) this.#pairs.add(pair)
  }

  lacks(names: readonly string[]): boolean {
    return this.#always?.some((name) => !names.includes(name)) ?? false
  }

  isOrderedOtherwise(names: readonly string[]): boolean {
    return pairsOf(names).some((pair) => {
      const [first, second] = pair.split(' ')
      return !this.#pairs.has(pair) && this.#pairs.has(`${second} ${first}`)
    })
  }
}

/** The first browser that the connection claims to be, with its main version. */
function browserOf({ requests }: CorpusRow): string | null {
  for (const request of requests) {
    const found = BROWSER.exec(headerOf(request, 'user-agent') ?? '')
    if (found !== null) return `${found[1]}/${found[2]}`.toLowerCase()
  }
  return null
}

/** Leaves out SNI and session resumption, which do not depend on the browser. */
function helloOf({ print }: CorpusRow): string {
  if (print.stable === null) return print.ja4 ?? ''
  const [, a, b, c] = print.stable.split('-')
  return `${a!.slice(0, 3)} ${a!.slice(-2)} ${b} ${c}`
}

function saysHeadless(request: CorpusRequest): boolean {
  return ['user-agent', 'sec-ch-ua'].some((name) => /headless/i.test(headerOf(request, name) ?? ''))
}

/** The GREASE brand changes with each version and is the same in all browsers built on it. */
function greaseBrands(request: CorpusRequest): readonly string[] {
  return (headerOf(request, 'sec-ch-ua') ?? '').match(GREASE_BRAND) ?? []
}

function sortOf(request: CorpusRequest): string {
  const { version, method } = request.head
  const fetched = ['sec-fetch-dest', 'sec-fetch-mode', 'sec-fetch-user'].map((name) =>
    headerOf(request, name),
  )
  return [version, method, ...fetched].join(' ')
}

/** Leaves out headers that depend on the page, the server or the user. */
function ownHeaders({ head }: CorpusRequest): readonly string[] {
  const names = head.rawHeaders.filter((_text, i) => i % 2 === 0).map((name) => name.toLowerCase())
  return names.filter((name) => OWN.has(name))
}

function pairsOf(names: readonly string[]): readonly string[] {
  return names.flatMap((first, i) => names.slice(i + 1).map((second) => `${first} ${second}`))
}

function headerOf({ head }: CorpusRequest, name: string): string | null {
  const { rawHeaders } = head
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.toLowerCase() === name) return rawHeaders[i + 1]!
  return null
}

const BROWSER = /\b(Chrome|Firefox|Version)\/(\d{1,4})/
const GREASE_BRAND = /"[^"]*\bNot\b[^"]*";v="[^"]*"/g
const OWN: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'connection',
  'host',
  'priority',
  'te',
  'user-agent',
  'sec-ch-ua',
  'sec-ch-ua-mobile',
  'sec-ch-ua-platform',
  'sec-fetch-dest',
  'sec-fetch-mode',
  'sec-fetch-site',
  'sec-fetch-user',
  'upgrade-insecure-requests',
])
