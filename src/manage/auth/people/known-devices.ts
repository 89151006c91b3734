import { randomBytes } from 'node:crypto'
import * as z from 'zod'
import { Fault } from '../../../shared/fault.ts'
import { type BrowserContext, signedInBefore } from '../oauth/people.ts'
import type { SignInParts } from './sign-in.ts'

/**
 * Remembers in a browser which accounts have signed in there, so that guesses from other browsers cannot lock
 * out the owner of an account (OWASP: device cookies). The cookie gives no access: password attempts with it
 * are only counted apart.
 */
export class KnownDevices {
  readonly #parts: Pick<SignInParts, 'store' | 'sealer' | 'nowMs'>
  readonly #cookie: string
  readonly #attributes: string

  constructor(parts: Pick<SignInParts, 'store' | 'sealer' | 'nowMs'> & { readonly publicUrl: string }) {
    this.#parts = parts
    const isHttps = parts.publicUrl.startsWith('https:')
    // The prefix keeps plain http and other hosts of the domain from setting it (RFC 6265bis §4.1.3).
    this.#cookie = isHttps ? '__Host-gatehouse_device' : 'gatehouse_device'
    this.#attributes = `; Path=/; Max-Age=${LIFE_S}; HttpOnly; SameSite=Lax${isHttps ? '; Secure' : ''}`
  }

  /** The id of this browser. `null`: the account has not signed in there since its password changed. */
  async idFor(ctx: BrowserContext, email: string): Promise<string | null> {
    for (const sealed of this.#sealedIn(ctx)) {
      const device = await this.#opened(sealed)
      if (device === null) continue
      const user = await this.#parts.store.users.byId(device.user)
      if (user === null || user.email !== email) continue
      return signedInBefore(device.atMs, user) ? null : device.id
    }
    return null
  }

  /** `atMs`: when the user signed in here. */
  async remember(ctx: BrowserContext, userId: string, atMs: number): Promise<void> {
    const others: string[] = []
    for (const sealed of this.#sealedIn(ctx)) {
      const device = await this.#opened(sealed)
      if (device !== null && device.user !== userId) others.push(sealed)
    }
    const device: Device = { id: randomBytes(ID_BYTES).toString('base64url'), user: userId, atMs }
    const own = await this.#parts.sealer.seal(JSON.stringify(device), SEALED_AS)
    const value = [own, ...others].slice(0, ACCOUNTS_MAX).join(SEPARATOR)
    ctx.append('Set-Cookie', `${this.#cookie}=${value}${this.#attributes}`)
  }

  #sealedIn(ctx: BrowserContext): readonly string[] {
    const value = ctx.cookies.get(this.#cookie, { signed: false }) ?? ''
    return value === '' ? [] : value.split(SEPARATOR, ACCOUNTS_MAX)
  }

  /** `null`: expired, changed, or sealed with a key that is no longer in use. */
  async #opened(sealed: string): Promise<Device | null> {
    if (sealed.length > SEALED_LENGTH_MAX) return null
    try {
      const opened = await this.#parts.sealer.open(sealed, SEALED_AS)
      const device = deviceSchema.parse(JSON.parse(opened.reveal()))
      return device.atMs + LIFE_S * 1000 > this.#parts.nowMs() ? device : null
    } catch (error) {
      if (error instanceof Fault && error.code.startsWith('SEAL_')) return null
      throw error
    }
  }
}

type Device = z.infer<typeof deviceSchema>

const deviceSchema = z.strictObject({ id: z.string(), user: z.string(), atMs: z.number() })
const SEALED_AS = 'known device'
const LIFE_S = 180 * 86_400
const ID_BYTES = 16
/** The number of accounts per browser; the cookie stays below 2 KB. */
const ACCOUNTS_MAX = 5
const SEPARATOR = '~'
const SEALED_LENGTH_MAX = 512
