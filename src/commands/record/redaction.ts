import { REDACTED } from '../../shared/secret.ts'
import type { RequestHead } from '../../wire/request-head.ts'

/**
 * Removes secrets from a request. Header names, their order, cookie names and authentication schemes stay;
 * private values are removed. When in doubt, it removes: fingerprints need no values, except for the last
 * part of JA4H.
 */
export function redactHead(head: RequestHead, keepsQueries: boolean): RequestHead {
  const { method, version } = head
  const rawHeaders = head.rawHeaders.map((text, index, all) =>
    index % 2 === 0 ? text : redactHeader(all[index - 1]!.toLowerCase(), text, keepsQueries),
  )
  return { method, version, target: redactUrl(head.target, keepsQueries), rawHeaders }
}

/** `name` in lower case. */
export function redactHeader(name: string, value: string, keepsQueries: boolean): string {
  if (value === '' || HARMLESS_NAMES.has(name)) return value
  if (name === 'cookie' || name === 'set-cookie') return value.split(';').map(redactCookie).join(';')
  if (name === ':path' || name === 'referer') return redactUrl(value, keepsQueries)
  const scheme = SCHEME.exec(value)
  if (scheme !== null) return `${scheme[1]} ${REDACTED}`
  return SECRET_NAME.test(name) ? REDACTED : redactTokens(value)
}

/** Removes the values of the query and keeps their names. */
export function redactUrl(url: string, keepsQueries: boolean): string {
  const at = url.indexOf('?')
  if (at === -1 || keepsQueries) return redactTokens(url)
  const fields = url.slice(at + 1).split('&')
  return redactTokens(`${url.slice(0, at)}?${fields.map((field) => field.replace(VALUE, '=')).join('&')}`)
}

/** A cookie without a name is a value (RFC 6265bis §5.6). */
function redactCookie(crumb: string): string {
  const pair = crumb.trimStart()
  if (pair === '') return crumb
  const blanks = crumb.slice(0, crumb.length - pair.length)
  return `${blanks}${pair.slice(0, pair.indexOf('=') + 1)}${REDACTED}`
}

function redactTokens(text: string): string {
  return text
    .replace(USER, REDACTED)
    .replace(KEY, REDACTED)
    .replace(LONG_RUN, (run) => (isRandom(run) ? REDACTED : run))
}

/**
 * Random text mixes letters and digits. `fine-grained-tool-streaming-2025-05-14` consists of words and
 * numbers.
 */
function isRandom(run: string): boolean {
  return run.split(/[-_]/).some((piece) => piece.length >= 8 && /\d/.test(piece) && /[a-z]/i.test(piece))
}

/** Matches whole words: `x-portkey-runtime` contains no key. */
const SECRET_NAME =
  /(?<![a-z])(?:auth(?!ority)[a-z]*|[a-z]*(?:auth|token|secret|apikey|password|session|csrf|xsrf)|keys?|credentials?|passwd|signature|jwt)(?![a-z])/
/** Names that look like secrets but are harmless, and headers that identify clients. */
const HARMLESS_NAMES: ReadonlySet<string> = new Set([
  'host',
  ':authority',
  'user-agent',
  'accept',
  'content-type',
  'sec-websocket-key',
  'sec-ch-ua',
])
/**
 * Schemes of Authorization values, in any header. Known schemes only: otherwise the first word of a secret
 * could pass as a scheme.
 */
const SCHEME =
  /^(bearer|basic|digest|token|api-?key|negotiate|ntlm|dpop|gnap|hawk|hmac|signature|aws4-hmac-sha256) +\S/i
const VALUE = /=.*$/s
/** Key formats of OpenAI, Anthropic, GitHub, Google, Slack and AWS, and JWTs. */
const KEY =
  /(?<![\w-])(?:[spr]k[-_][\w-]{8,}|gh[pousr]_\w{16,}|github_pat_\w+|AIza[\w-]{20,}|ya29\.[\w-]+|xox[abprs]-[\w-]+|AKIA\w{12,}|hf_\w{16,}|eyJ[\w-]+(?:\.[\w-]+){0,4})/g
/** User information in a URL: `https://user:password@`. */
const USER = /(?<=:\/\/)[^/?#\s]{1,1000}(?=@)/g
const LONG_RUN = /[\w-]{32,}/g
