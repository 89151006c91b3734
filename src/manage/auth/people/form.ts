import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { readBytes } from '../../http/body-bytes.ts'
import { Refusal } from '../../http/refusal.ts'
import type { BrowserContext } from '../oauth/people.ts'

/** Reads a submitted form. Throws a Refusal if the body is not a form. */
export async function readForm(ctx: BrowserContext): Promise<URLSearchParams> {
  const type = ctx.get('Content-Type').split(';', 1)[0]!.trim().toLowerCase()
  if (type !== 'application/x-www-form-urlencoded' || ctx.get('Content-Encoding') !== '')
    throw new Refusal(
      'unsupported_media_type',
      'the body must be a submitted form (application/x-www-form-urlencoded)',
    )
  if (ctx.get('Expect') !== '') ctx.res.writeContinue()
  return new URLSearchParams((await readBytes(ctx.req, FORM_BYTES_MAX)).toString('utf8'))
}

/**
 * Protects forms against cross-site requests. Each form has a token made of a random cookie and the form's
 * purpose. A page of another site knows neither, and cannot set the cookie.
 */
export class FormTokens {
  readonly #cookie: string
  readonly #attributes: string

  constructor(publicUrl: string) {
    const isHttps = publicUrl.startsWith('https:')
    // The prefix keeps plain http and other hosts of the domain from setting it (RFC 6265bis §4.1.3).
    this.#cookie = isHttps ? '__Host-gatehouse_form' : 'gatehouse_form'
    this.#attributes = `; Path=/; HttpOnly; SameSite=Lax${isHttps ? '; Secure' : ''}`
  }

  /** The token for a form. Sets the cookie if the browser has none. */
  tokenFor(ctx: BrowserContext, purpose: string): string {
    const known = this.#wordIn(ctx)
    const word = known ?? randomBytes(WORD_BYTES).toString('base64url')
    if (known === null) ctx.append('Set-Cookie', `${this.#cookie}=${word}${this.#attributes}`)
    return tokenOf(word, purpose)
  }

  isGood(ctx: BrowserContext, purpose: string, form: URLSearchParams): boolean {
    // If the browser sends Sec-Fetch-Site, it is stronger evidence than the token.
    if (!isFromHere(ctx)) return false
    const word = this.#wordIn(ctx)
    if (word === null) return false
    const [given, expected] = [Buffer.from(form.get(TOKEN) ?? ''), Buffer.from(tokenOf(word, purpose))]
    return given.length === expected.length && timingSafeEqual(given, expected)
  }

  #wordIn(ctx: BrowserContext): string | null {
    const word = ctx.cookies.get(this.#cookie, { signed: false }) ?? ''
    return WORD.test(word) ? word : null
  }
}

/** Whether the request comes from our own page, if the browser tells. */
export function isFromHere(ctx: BrowserContext): boolean {
  return HERE.has(ctx.get('Sec-Fetch-Site'))
}

function tokenOf(word: string, purpose: string): string {
  return createHash('sha256')
    .update(JSON.stringify(['form', word, purpose]))
    .digest('base64url')
}

/** The name of the field. */
export const TOKEN = 'token'
const WORD_BYTES = 32
const WORD = /^[\w-]{43}$/
/** Empty: an old browser. `none`: typed or reloaded by the person. */
const HERE = new Set(['', 'same-origin', 'none'])
/** Room for a long password with every byte percent-encoded. */
const FORM_BYTES_MAX = 32_768
