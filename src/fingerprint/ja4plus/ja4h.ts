import type { Brand } from '../../shared/brand.ts'
import { ownText } from '../../wire/own-text.ts'
import type { RequestHead } from '../../wire/request-head.ts'
import { twoDigits } from '../ja4.ts'
import { hash12 } from '../text.ts'

export type Ja4h = Brand<string, 'Ja4h'>

/**
 * The JA4H of a request: method, version, header names in order and case as sent, cookies by name. `hashes`:
 * a caller with many requests passes its own.
 */
export function ja4h(head: RequestHead, hashes: NameHashes | null = null): Ja4h {
  const { a, names, cookieNames, cookiePairs } = read(head)
  const b = hashes === null ? hash12(names) : hashes.of(names)
  const c = hashes === null ? hash12(cookieNames) : hashes.of(cookieNames)
  return `${a}_${b}_${c}_${hash12(cookiePairs)}` as Ja4h
}

/** JA4H without hashing. Empty parts leave bare underscores. It contains cookie values: never log it. */
export function ja4hRaw(head: RequestHead): string {
  const said = read(head)
  return `${said.a}_${said.names}_${said.cookieNames}_${said.cookiePairs}`
}

interface Said {
  readonly a: string
  readonly names: string
  readonly cookieNames: string
  readonly cookiePairs: string
}

/**
 * The hashes of header names seen before, which most requests repeat. A lookup takes a fifth of the time of a
 * hash.
 */
export class NameHashes {
  #hashes = new Map<string, string>()

  of(names: string): string {
    const known = this.#hashes.get(names)
    if (known !== undefined) return known
    const hashed = hash12(names)
    if (names.length > KEPT_LENGTH_MAX) return hashed
    if (this.#hashes.size === HASHES_MAX) this.#hashes = new Map()
    this.#hashes.set(ownText(names), hashed)
    return hashed
  }
}

/**
 * Extracts all parts of the fingerprint. Cookie and Referer are flags and not counted as names.
 * Pseudo-headers are ignored.
 */
function read(head: RequestHead): Said {
  const raw = head.rawHeaders
  const names: string[] = []
  const cookies: Cookies = { names: [], pairs: [] }
  let cookie = 'n'
  let referer = 'n'
  let language: string | null = null
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!
    if (name.charCodeAt(0) === COLON) continue
    if (name.length === COOKIE.length && name.toLowerCase() === COOKIE) {
      cookie = 'c'
      cutCookies(raw[i + 1]!, cookies)
    } else if (name.length === REFERER.length && name.toLowerCase() === REFERER) {
      referer = 'r'
    } else {
      names.push(name)
      if (name.length === LANGUAGE.length && name.toLowerCase() === LANGUAGE) language ??= raw[i + 1]!
    }
  }
  sortByName(cookies)
  const counts = twoDigits(names.length)
  return {
    a: `${methodMark(head.method)}${head.version}${cookie}${referer}${counts}${languageMark(language ?? '')}`,
    names: names.join(','),
    cookieNames: cookies.names.join(','),
    cookiePairs: cookies.pairs.join(','),
  }
}

/** Two parallel lists. A cookie without `=` is both its name and its pair. */
interface Cookies {
  names: string[]
  pairs: string[]
}

/** A header may hold all cookies or, in HTTP/2, one of them. Empty pieces are skipped. */
function cutCookies(value: string, cookies: Cookies): void {
  let from = 0
  while (from < value.length && cookies.pairs.length < COOKIES_MAX) {
    let to = value.indexOf(';', from)
    if (to === -1) to = value.length
    let first = from
    let last = to
    while (first < last && isBlank(value.charCodeAt(first))) first++
    while (first < last && isBlank(value.charCodeAt(last - 1))) last--
    if (first < last) {
      const pair = value.slice(first, last)
      const equals = pair.indexOf('=')
      cookies.pairs.push(pair)
      cookies.names.push(equals === -1 ? pair : pair.slice(0, equals))
    }
    from = to + 1
  }
}

/**
 * Sorts by name alone, byte by byte; equal names stay in the order sent. Sorting whole pairs would be wrong
 * because `-` sorts before `=` (FoxIO-LLC/ja4 issue 58). Insertion sort is by far the fastest for the few
 * cookies of a real request.
 */
function sortByName(cookies: Cookies): void {
  const { names, pairs } = cookies
  if (names.length > INSERTION_MAX) {
    const order = names
      .map((_, i) => i)
      .sort((i, j) => (names[i]! < names[j]! ? -1 : names[i] === names[j] ? 0 : 1))
    cookies.names = order.map((i) => names[i]!)
    cookies.pairs = order.map((i) => pairs[i]!)
    return
  }
  for (let i = 1; i < names.length; i++) {
    const name = names[i]!
    const pair = pairs[i]!
    let at = i
    while (at > 0 && names[at - 1]! > name) {
      names[at] = names[at - 1]!
      pairs[at] = pairs[at - 1]!
      at--
    }
    names[at] = name
    pairs[at] = pair
  }
}

/**
 * The first four characters of the first language, without `-` and blanks. Other non-letters become two hex
 * digits.
 */
function languageMark(value: string): string {
  let mark = ''
  for (let i = 0; i < value.length && mark.length < 4; i++) {
    const code = value.charCodeAt(i)
    if (code === COMMA || code === SEMICOLON) break
    if (code === HYPHEN || isBlank(code)) continue
    const lower = code | 0x20
    mark +=
      lower >= 0x61 && lower <= 0x7a
        ? String.fromCharCode(lower)
        : (code & 0xff).toString(16).padStart(2, '0')
  }
  return mark.slice(0, 4).padEnd(4, '0')
}

/**
 * The first two characters of the method, except for methods that would share them. The spec names only
 * common methods and the references differ on the others. This follows the Wireshark plugin, which tells
 * WebDAV methods apart.
 */
function methodMark(method: string): string {
  return (
    METHOD_MARKS.get(method) ?? METHOD_MARKS.get(method.toUpperCase()) ?? method.slice(0, 2).toLowerCase()
  )
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

const METHOD_MARKS: ReadonlyMap<string, string> = new Map([
  ['GET', 'ge'],
  ['POST', 'po'],
  ['CHECKIN', 'cn'],
  ['CHECKOUT', 'ct'],
  ['COPY', 'cy'],
  ['M-SEARCH', 'ms'],
  ['MKCALENDAR', 'mc'],
  ['MKCOL', 'ml'],
  ['MKREDIRECTREF', 'mr'],
  ['MKWORKSPACE', 'mw'],
  ['PROPFIND', 'pf'],
  ['PROPPATCH', 'pp'],
  ['REBIND', 'rb'],
  ['REPORT', 'rp'],
  ['UNBIND', 'ub'],
  ['UNCHECKOUT', 'uc'],
  ['UNLINK', 'ui'],
  ['UNLOCK', 'uo'],
  ['UPDATEREDIRECTREF', 'ur'],
])
const INSERTION_MAX = 32
/**
 * Browsers keep at most 180 cookies for a site. Over HTTP/2 a few bytes can stand for 64 KiB of cookies (RFC
 * 7541 §6.1), and sorting 32,000 cookies took 9 ms. So later cookies are ignored.
 */
const COOKIES_MAX = 256
/** Limits the cache to about one megabyte, whatever clients send. */
const HASHES_MAX = 2048
const KEPT_LENGTH_MAX = 400
const COOKIE = 'cookie'
const REFERER = 'referer'
const LANGUAGE = 'accept-language'
const COLON = 0x3a
const COMMA = 0x2c
const SEMICOLON = 0x3b
const HYPHEN = 0x2d
