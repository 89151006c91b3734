import assert from 'node:assert/strict'

/** A page that a FormBrowser has come to. */
export interface SeenPage {
  readonly url: URL
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/**
 * What a browser without scripts does: keeps cookies by name, path and scheme, follows redirects, fills in the form of a
 * page and sends it, and holds the page's own policy against it. It is led off the gateway at most to `away`.
 */
export class FormBrowser {
  readonly #origin: string
  /** Where the gateway is, whatever it calls itself. */
  readonly #server: string
  readonly #jar = new Map<string, { name: string; value: string; path: string; line: string }>()
  page: SeenPage | null = null
  away: URL | null = null

  constructor(server: string, publicUrl = server) {
    this.#server = server
    this.#origin = new URL(publicUrl).origin
  }

  get cookies(): readonly { readonly name: string; readonly value: string; readonly line: string }[] {
    return [...this.#jar.values()]
  }

  /** Of another browser, whose cookies somebody has. */
  takeCookies(other: FormBrowser): void {
    for (const [key, cookie] of other.#jar) this.#jar.set(key, cookie)
  }

  /** As if the gateway had set it. */
  putCookie(name: string, value: string): void {
    this.#jar.set(`${name} /`, { name, value, path: '/', line: '' })
  }

  async open(address: string | URL, headers: Record<string, string> = {}): Promise<this> {
    return this.#go(new URL(address), { method: 'GET', headers }, [])
  }

  /** Fills in the form of the page and presses one of its buttons. `null`: the field is not sent. */
  async submit(
    button: string,
    fields: Readonly<Record<string, string | readonly string[] | null>> = {},
    headers: Record<string, string> = {},
  ): Promise<this> {
    const { url, text, headers: head } = this.page!
    const sent = new URLSearchParams(fieldsIn(text).filter(([name]) => !(name in fields)))
    for (const [name, values] of Object.entries(fields))
      for (const value of values === null ? [] : [values].flat()) sent.append(name, value as string)
    sent.append('action', button)
    const allowed =
      /form-action ([^;]*)/.exec(head.get('content-security-policy') ?? '')?.[1]?.split(' ') ?? []
    return this.#go(
      url,
      { method: 'POST', body: sent, headers: { 'sec-fetch-site': 'same-origin', ...headers } },
      allowed,
    )
  }

  /** `allowed`: where the page's policy lets its form lead to. Empty: there was no form. */
  async #go(
    start: URL,
    init: { method: string; headers: Record<string, string>; body?: URLSearchParams },
    allowed: readonly string[],
  ): Promise<this> {
    let [url, request] = [start, init]
    for (let step = 0; step < 20; step++) {
      const sources = allowed.map((source) => (source === "'self'" ? this.#origin : source))
      if (allowed.length > 0) assert.ok(sources.includes(url.origin), `${url.origin} is not in ${sources}`)
      if (url.origin !== this.#origin) {
        this.away = url
        this.page = null
        return this
      }
      const response = await fetch(this.#server + url.pathname + url.search, {
        ...{ redirect: 'manual', method: request.method, ...(request.body && { body: request.body }) },
        headers: { ...request.headers, cookie: this.cookiesFor(url) },
      })
      this.#keep(response, url)
      const text = await response.text()
      const location = response.headers.get('location')
      if (location === null) {
        this.page = { url, status: response.status, headers: response.headers, text }
        return this
      }
      url = new URL(location, url)
      request = { method: 'GET', headers: {} }
    }
    throw new Error(`led in circles, to ${url}`)
  }

  cookiesFor({ pathname }: URL): string {
    const matches = (path: string) =>
      pathname === path || pathname.startsWith(path === '/' ? path : `${path}/`)
    const found = [...this.#jar.values()].filter(({ path }) => matches(path))
    return found.map(({ name, value }) => `${name}=${value}`).join('; ')
  }

  #keep(response: Response, { protocol }: URL): void {
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(';').map((each) => each.trim())
      const [name, value] = pair!.split('=') as [string, string]
      const has = (attribute: string) => attributes.some((each) => each.toLowerCase() === attribute)
      const path = attributes.find((each) => each.toLowerCase().startsWith('path='))?.slice(5) ?? '/'
      assert.ok(has('httponly') && has('samesite=lax'), line)
      assert.equal(has('secure'), protocol === 'https:', line)
      if (name.startsWith('__Host-')) assert.ok(path === '/' && !/domain=/i.test(line), line)
      if (protocol === 'https:') assert.match(name, /^__(?:Host|Secure)-/)
      if (value === '') this.#jar.delete(`${name} ${path}`)
      else this.#jar.set(`${name} ${path}`, { name, value, path, line })
    }
  }
}

/** As they are before anybody changes them. */
export function fieldsIn(text: string): [string, string][] {
  return [...text.matchAll(/<input\b[^>]*>/g)].flatMap(([tag]) => {
    const attribute = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1] ?? null
    const isOff = attribute('type') === 'checkbox' && !/\bchecked\b/.test(tag)
    const name = attribute('name')
    return name === null || isOff ? [] : [[name, attribute('value') ?? '']]
  })
}
