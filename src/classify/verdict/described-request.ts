import type { Ja4 } from '../../fingerprint/ja4.ts'
import { type Ja4h, ja4h } from '../../fingerprint/ja4plus/ja4h.ts'
import type { Ja4s } from '../../fingerprint/ja4plus/ja4s.ts'
import type { Ja4x } from '../../fingerprint/ja4plus/ja4x.ts'
import type { NoHello, Print } from '../../fingerprint/print.ts'
import type { StableKey } from '../../fingerprint/stable-key.ts'
import type { HttpVersion, RequestHead } from '../../wire/request-head.ts'
import { EvidenceSet } from '../known/evidence.ts'
import { forgedHeaders } from './our-headers.ts'

/** A description of a request that is not at hand. `null`: not given, and then it is evidence of nothing. */
export interface Told {
  readonly method: string | null
  readonly target: string | null
  readonly version: HttpVersion | null
  /** Names and values as sent. HTTP/2 pseudo-headers may be included. */
  readonly rawHeaders: readonly string[] | null
  /** Used if the headers are not given or lack it. */
  readonly userAgent: string | null
  readonly address: string | null
  readonly ja4: string | null
  readonly stable: string | null
  readonly ja4s: string | null
  readonly ja4x: string | null
  readonly ja4h: string | null
  readonly http2: string | null
  readonly noHello: NoHello | null
  readonly isTls: boolean | null
}

/** The same request in the form that requests are classified in. */
export interface DescribedRequest {
  readonly print: Print
  readonly head: RequestHead
  /** Empty: unknown. */
  readonly address: string
  /** Headers that only the proxy may set but that the client sent. */
  readonly forged: readonly string[]
  /** The most informative kind of facts that is given. */
  readonly knownBy: 'headers' | 'user-agent' | 'fingerprints'
  /** Evidence that would be found only because facts are missing. */
  readonly untold: EvidenceSet
}

/** `ja4plus`: whether to compute a JA4H that is not given. */
export function describeRequest(told: Told, ja4plus: boolean): DescribedRequest {
  const { rawHeaders } = told
  const headers = rawHeaders === null ? NO_HEADERS : readHeaders(rawHeaders)
  const isAdded = told.userAgent !== null && headers.userAgent !== told.userAgent
  const version = told.version ?? versionOf(told, headers)
  const head: RequestHead = {
    method: told.method ?? headers.method ?? 'GET',
    target: told.target ?? headers.path ?? '/',
    version: version ?? (told.ja4?.slice(8, 10) === 'h2' ? '20' : '11'),
    rawHeaders: isAdded ? [...(rawHeaders ?? []), 'User-Agent', told.userAgent!] : (rawHeaders ?? []),
  }
  const knownBy = rawHeaders !== null ? 'headers' : told.userAgent !== null ? 'user-agent' : 'fingerprints'
  const untold = new EvidenceSet()
  if (knownBy !== 'headers') untold.addAll(OF_HEADERS)
  if (knownBy === 'fingerprints') untold.addAll(OF_USER_AGENT)
  // The description does not say where the User-Agent stood among the other headers.
  if (isAdded) untold.addAll(OF_HEADER_ORDER)
  if (version === null) untold.addAll(OF_VERSION)
  if (!(told.isTls ?? showsTls(told, headers, version))) untold.addAll(OF_SECURITY)
  return {
    print: printOf(told, ja4plus && rawHeaders !== null ? { ...head, rawHeaders } : null),
    head,
    address: told.address ?? '',
    forged: rawHeaders === null ? [] : forgedHeaders(rawHeaders),
    knownBy,
    untold,
  }
}

/** `sent`: the request to compute a JA4H from. */
function printOf(told: Told, sent: RequestHead | null): Print {
  return {
    connection: {
      ja4: told.ja4 as Ja4 | null,
      unresumed: null,
      stable: told.stable as StableKey | null,
      traits: null,
      ja4s: told.ja4s as Ja4s | null,
      ja4x: told.ja4x as Ja4x | null,
      http2: told.http2,
      pageWeight: null,
      noHello: told.noHello,
      ja4Source: told.ja4 === null ? null : 'own',
    },
    ja4h: (told.ja4h as Ja4h | null) ?? (sent === null ? null : ja4h(sent)),
  }
}

/** The facts of a request that its headers contain. */
interface InHeaders {
  readonly userAgent: string | null
  readonly method: string | null
  readonly path: string | null
  readonly scheme: string | null
  /** Whether a name begins with a capital letter. */
  readonly hasCapitals: boolean
  readonly hasPseudo: boolean
}

function readHeaders(rawHeaders: readonly string[]): InHeaders {
  const found: Record<'user-agent' | ':method' | ':path' | ':scheme', string | null> = {
    'user-agent': null,
    ':method': null,
    ':path': null,
    ':scheme': null,
  }
  let hasCapitals = false
  let hasPseudo = false
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    const first = name.charCodeAt(0)
    if (first >= 0x41 && first <= 0x5a) hasCapitals = true
    if (first === COLON) hasPseudo = true
    if (first !== COLON && name.length !== USER_AGENT_LENGTH) continue
    const lower = name.toLowerCase()
    if (lower in found) found[lower as keyof typeof found] ??= rawHeaders[i + 1]!
  }
  return {
    userAgent: found['user-agent'],
    method: found[':method'],
    path: found[':path'],
    scheme: found[':scheme'],
    hasCapitals,
    hasPseudo,
  }
}

/**
 * The version, if only one is possible. Headers all in lower case may be HTTP/2, or a server may have
 * lower-cased them.
 */
function versionOf({ http2, ja4h }: Told, { hasPseudo, hasCapitals }: InHeaders): HttpVersion | null {
  if (hasPseudo || http2 !== null) return '20'
  if (ja4h !== null) return ja4h.slice(2, 4) as HttpVersion
  return hasCapitals ? '11' : null
}

/** Browsers use HTTP/2 only over TLS. */
function showsTls({ ja4, ja4s, ja4x }: Told, { scheme }: InHeaders, version: HttpVersion | null): boolean {
  if (ja4 !== null || ja4s !== null || ja4x !== null) return true
  return scheme === 'https' || (scheme === null && (version === '20' || version === '30'))
}

const COLON = 0x3a
const USER_AGENT_LENGTH = 'user-agent'.length
const NO_HEADERS: InHeaders = {
  userAgent: null,
  method: null,
  path: null,
  scheme: null,
  hasCapitals: false,
  hasPseudo: false,
}
const OF_USER_AGENT = EvidenceSet.of(['no-user-agent'])
const OF_SECURITY = EvidenceSet.of(['client-hints-missing', 'fetch-metadata-missing', 'encoding-disagrees'])
const OF_HEADER_ORDER = EvidenceSet.of(['header-order-agrees', 'header-order-disagrees'])
const OF_VERSION = EvidenceSet.of([
  'header-order-agrees',
  'header-order-disagrees',
  'header-case-odd',
  'headers-missing',
  'several-headers-missing',
])
const OF_HEADERS = EvidenceSet.of([
  'client-hints-missing',
  'fetch-metadata-missing',
  'encoding-disagrees',
  'header-order-agrees',
  'header-order-disagrees',
  'header-case-odd',
  'headers-missing',
  'several-headers-missing',
  'language-missing',
])
