import type Koa from 'koa'
import type {
  BrowserContext,
  BrowserSession,
  Interaction,
  People,
  Person,
} from '../../src/manage/auth/oauth/people.ts'
import type { Scope } from '../../src/manage/http/access/principal.ts'

/** People who sign in and consent without a page, as a test says. */
export class TestPeople implements People {
  readonly people = new Map<string, Person>()
  /** Who sits in front of the browser. */
  who = 'usr_1'
  /** What they consent to; `null`: they deny. */
  consentsTo: readonly Scope[] | null = ['read', 'detect', 'write', 'admin', 'mcp']
  /** What they were shown. */
  readonly shown: Omit<Interaction, 'signedIn' | 'consented' | 'denied'>[] = []

  constructor() {
    this.add('usr_1', ['read', 'detect', 'mcp'])
  }

  add(id: string, scopes: readonly Scope[]): void {
    this.people.set(id, {
      id,
      name: `${id}@example.test`,
      apps: '*',
      scopes: new Set(scopes),
      plan: 'standard',
      signedInSinceMs: 0,
    })
  }

  async find(id: string): Promise<Person | null> {
    return this.people.get(id) ?? null
  }

  async isAnybody(): Promise<boolean> {
    return this.people.size > 0
  }

  async interact(_: Koa.ParameterizedContext, interaction: Interaction): Promise<void> {
    const { signedIn, consented, denied, ...shown } = interaction
    this.shown.push(shown)
    if (shown.asks === 'login') return signedIn(this.who, { atMs: Date.now(), stays: true })
    return this.consentsTo === null ? denied() : consented(this.consentsTo)
  }

  async account(): Promise<void> {
    throw new Error('nobody looks at an account here')
  }

  async decide(): Promise<void> {
    throw new Error('nobody decides here')
  }

  async signOut(_: BrowserContext, session: BrowserSession): Promise<void> {
    await session.end()
  }

  async cameBack(ctx: BrowserContext): Promise<void> {
    ctx.status = 404
  }

  refused(ctx: BrowserContext, status: number, text: string): void {
    ctx.body = text
    ctx.status = status
  }
}

/** Where it is led off to, or the page that it ends on. */
interface Led {
  readonly away: URL | null
  readonly status: number
  readonly text: string
}

/** A browser that keeps cookies, by path, and follows redirects on the gateway until one leads elsewhere. */
export class TestBrowser {
  readonly #origin: string
  readonly #cookies = new Map<string, { value: string; path: string }>()
  /** Where it was led, one after the other. */
  readonly visited: string[] = []

  constructor(origin: string) {
    this.#origin = origin
  }

  open(address: string): Promise<Led> {
    return this.#follow(new URL(address), null)
  }

  /** Sends the one form on a page, with what it hides. */
  submit(page: string): Promise<Led> {
    const [, action = ''] = /<form method="post" action="([^"]*)"/.exec(page) ?? []
    const fields = [...page.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)]
    const form = new URLSearchParams()
    for (const [, name = '', value = ''] of fields) form.append(name, value)
    return this.#follow(new URL(action), form)
  }

  async #follow(start: URL, form: URLSearchParams | null): Promise<Led> {
    let [url, body] = [start, form]
    for (let step = 0; step < 20; step++) {
      if (url.origin !== this.#origin) return { away: url, status: 0, text: '' }
      this.visited.push(url.pathname)
      const sent = body === null ? {} : { method: 'POST', body }
      const headers = { cookie: this.#cookiesFor(url) }
      const response = await fetch(url, { redirect: 'manual', headers, ...sent })
      this.#keep(response)
      const location = response.headers.get('location')
      const text = await response.text()
      if (location === null) return { away: null, status: response.status, text }
      url = new URL(location, url)
      body = null
    }
    throw new Error(`led in circles: ${this.visited}`)
  }

  #cookiesFor({ pathname }: URL): string {
    return [...this.#cookies]
      .filter(([, { path }]) => pathname.startsWith(path))
      .map(([name, { value }]) => `${name.split(' ')[0]}=${value}`)
      .join('; ')
  }

  #keep(response: Response): void {
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(';').map((each) => each.trim())
      const [name, value] = pair!.split('=') as [string, string]
      const path = attributes.find((each) => each.startsWith('path='))?.slice(5) ?? '/'
      if (value === '') this.#cookies.delete(`${name} ${path}`)
      else this.#cookies.set(`${name} ${path}`, { value, path })
    }
  }
}
