import { Fault } from '../../../shared/fault.ts'
import { Refusal } from '../../http/refusal.ts'
import type { BrowserContext, From } from '../oauth/people.ts'
import { FormTokens, readForm } from './form.ts'
import { messagePage, type SignInPage, sendPage } from './page.ts'
import { isBusy } from './sign-in.ts'

/**
 * Handles a page view (`null`) or a submitted form. Returns the page, or `null` if it has redirected the
 * browser.
 */
type PageWork = (form: URLSearchParams | null) => Promise<SignInPage | null>

/** Answers browsers with pages, and checks that a submitted form comes from one of those pages. */
export class FormPages {
  readonly publicUrl: string
  readonly #tokens: FormTokens

  constructor(publicUrl: string) {
    this.publicUrl = publicUrl
    this.#tokens = new FormTokens(publicUrl)
  }

  /** A token for a form with this purpose. */
  tokenFor(ctx: BrowserContext, purpose: string): string {
    return this.#tokens.tokenFor(ctx, purpose)
  }

  async answer(ctx: BrowserContext, purpose: string, work: PageWork): Promise<void> {
    const page = await this.#page(ctx, purpose, work).catch(pageAt)
    if (page !== null) sendPage(ctx, this.publicUrl, page)
  }

  refused(ctx: BrowserContext, status: number, text: string): void {
    sendPage(ctx, this.publicUrl, messagePage('Request failed', sentence(text), status))
  }

  async #page(ctx: BrowserContext, purpose: string, work: PageWork): Promise<SignInPage | null> {
    if (!isPrivate(this.publicUrl)) return UNSAFE
    if (ctx.method !== 'POST') return work(null)
    const form = await readForm(ctx)
    return this.#tokens.isGood(ctx, purpose, form) ? work(form) : FOREIGN
  }
}

/** For a page whose callback redirects the browser. */
export async function gone(leaving: Promise<void>): Promise<null> {
  await leaving
  return null
}

/** For the audit log and for counting. */
export function fromOf({ state: { address, requestId } }: BrowserContext): From {
  return { address, requestId }
}

/** A page for errors that the person can understand. Rethrows all others. */
function pageAt(error: unknown): SignInPage {
  if (error instanceof Refusal) return messagePage('Request failed', sentence(error.message), error.status)
  if (isBusy(error)) return { ...LATER, retryAfterS: BUSY_S }
  if (error instanceof Fault && error.code.startsWith('STORE_')) return { ...LATER, retryAfterS: BUSY_S }
  throw error
}

/** Whether passwords are safe on the way here: https, or this machine. */
function isPrivate(publicUrl: string): boolean {
  const { protocol, hostname } = new URL(publicUrl)
  return protocol === 'https:' || /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname)
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

const BUSY_S = 5
const UNSAFE = messagePage(
  'Sign-in is not available',
  'Passwords are not accepted over plain http. An administrator must set manage.public_url to the https URL of this server.',
  403,
)
const FOREIGN = messagePage(
  'Form not accepted',
  'The form was not loaded in this browser, or the browser blocks cookies. Go back, reload the page and try again.',
  403,
)
const LATER = messagePage('Temporarily unavailable', 'Reload the page in a few seconds.', 503)
