import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { PaymentServer, type PaymentServerSettings } from './payment-server.ts'

export interface LicenseServerSettings extends PaymentServerSettings {
  readonly clientId: string | null
  readonly clientSecret: string | null
  /** How long a valid token needs no other question for the same URL. */
  readonly cacheMs: number
}

export type Introspected = ActiveLicense | { readonly isActive: false }

interface ActiveLicense {
  readonly isActive: true
  readonly untilMs: number
  /** The client that got the license; `null`: not stated. */
  readonly client: string | null
}

/**
 * Asks the license server whether a token is valid for a URL: introspection of RSL 1.0 (§5.5) and RFC 7662. Tokens are
 * remembered by their hash.
 */
export class LicenseServer {
  readonly #settings: LicenseServerSettings
  readonly #server: PaymentServer
  readonly #path: string
  readonly #known = new LRUCache<string, ActiveLicense>({ max: KNOWN_MAX })

  constructor(settings: LicenseServerSettings) {
    this.#settings = settings
    this.#server = new PaymentServer('the license server', settings)
    const { pathname, search } = new URL(settings.url)
    this.#path = pathname + search
  }

  /** Throws a Fault if the answer is missing or makes no sense. */
  async introspect(token: string, url: string, nowMs: number): Promise<Introspected> {
    const key = `${hash('sha256', token)} ${url}`
    const known = this.#known.get(key)
    if (known !== undefined && known.untilMs > nowMs) return known
    const said = await this.#ask(token, url)
    if (typeof said['active'] !== 'boolean') throw this.#server.senseless('introspection', 'active')
    const { exp, nbf, token_type: type, client_id: client } = said
    for (const [name, value] of Object.entries({ exp, nbf }))
      if (value !== undefined && !Number.isSafeInteger(value))
        throw this.#server.senseless('introspection', name)
    const isLicense = type === undefined || (typeof type === 'string' && type.toLowerCase() === 'license')
    const endsMs = exp === undefined ? Number.POSITIVE_INFINITY : Number(exp) * 1_000
    const begins = nbf === undefined ? 0 : Number(nbf) * 1_000
    if (!said['active'] || !isLicense || endsMs <= nowMs || begins > nowMs) return { isActive: false }
    const found: ActiveLicense = {
      isActive: true,
      untilMs: Math.min(endsMs, nowMs + this.#settings.cacheMs),
      client: typeof client === 'string' && CLIENT.test(client) ? client : null,
    }
    if (found.untilMs > nowMs) this.#known.set(key, found)
    return found
  }

  close(): Promise<void> {
    return this.#server.close()
  }

  async #ask(token: string, resource: string): Promise<Readonly<Record<string, unknown>>> {
    const { clientId, clientSecret } = this.#settings
    const answer = await this.#server.post(
      this.#path,
      {
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
        ...(clientId === null ? {} : { authorization: basic(clientId, clientSecret ?? '') }),
      },
      new URLSearchParams({ token, resource }).toString(),
    )
    if (answer.status !== 200) throw this.#server.senseless('introspection', `status ${answer.status}`)
    // A page of another program on the way, as of a login, may be JSON by accident.
    if (!JSON_TYPE.test(answer.type)) throw this.#server.senseless('introspection', 'Content-Type')
    return answer.object()
  }
}

/** RFC 6749 §2.3.1: both are encoded as in forms before they are joined. */
function basic(id: string, password: string): string {
  const [name, word] = [id, password].map((text) => new URLSearchParams({ a: text }).toString().slice(2))
  return `Basic ${Buffer.from(`${name}:${word}`).toString('base64')}`
}

const KNOWN_MAX = 10_000
/** RFC 7662 §2.2. Signed answers (RFC 9701) are not JSON. */
const JSON_TYPE = /^application\/json *(?:;|$)/i
const CLIENT = /^[\w.:@/-]{1,200}$/
