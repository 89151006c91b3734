import { hasTraits, TRAIT } from '../../fingerprint/hello-traits.ts'
import type { ConnectionPrint } from '../../fingerprint/print.ts'
import type { RequestHead } from '../../wire/request-head.ts'
import { isEncodingNewer, isEncodingOlder, isHelloNewer, mayKnowZstd } from '../known/browsers/history.ts'
import type { EvidenceSet } from '../known/evidence.ts'
import { HEADER } from '../known/index/header-index.ts'
import type { HeaderOrders } from '../known/header-orders.ts'
import type { Reading } from './reading.ts'
import type { Scratch } from './scratch.ts'
import type { Shown } from './shown.ts'
import type { Engine } from '../known/software.ts'
import type { Stack } from '../known/stack.ts'
import type { Claim } from '../known/user-agent.ts'

/** Compares a request that claims to come from a browser with what that engine and version would send. */
export function markBrowser(
  { marks, reading }: Scratch,
  { claim, stack }: Shown,
  print: ConnectionPrint,
  head: RequestHead,
  orders: HeaderOrders,
): void {
  const { engine } = claim
  if (engine === null || engine === 'other' || claim.version === 0) {
    marks.add('names-plain-browser')
    if (claim.endsAtTls12 && print.ja4 !== null && offersTls13(print.ja4)) marks.add('newer-than-claimed')
    const isComparable = engine !== null && engine !== 'other' && print.ja4 !== null
    if (isComparable && (stack.isKnown || head.version !== '30')) markPlainStack(marks, claim, engine, stack)
    return
  }
  marks.add('names-browser')
  const { isUpgrade } = reading
  // For QUIC, only hellos that are listed in the signatures are known.
  const isHttp3 = head.version === '30'
  if (print.ja4 !== null && (stack.isKnown || !isHttp3)) markStack(marks, claim, engine, stack)
  if (print.traits !== null && !claim.isEmbedded && !isHttp3) markTraits(marks, claim, engine, stack, print)
  if (print.http2 !== null && head.version === '20') markHttp2(marks, claim, engine, stack, print)
  if (print.ja4 !== null && !isHttp3 && !claim.isEmbedded && !isUpgrade && print.ja4.slice(8, 10) !== 'h2')
    marks.add('http1-only')
  // Browsers send these headers only to secure origins, and not with a WebSocket handshake or a CORS
  // preflight.
  if (print.noHello !== 'not-tls' && !isUpgrade && head.method !== 'OPTIONS')
    markSecureHeaders(marks, claim, engine, reading, isRelayed(print))
  if (reading.fetchMode !== null && isFetchMetadataOdd(head, reading)) marks.add('fetch-metadata-odd')
  if (!isRelayed(print)) markMissing(marks, claim, engine, head, reading)
  if (reading.clientHints !== null && isClientHintsOdd(claim, engine, reading))
    marks.add('client-hints-disagree')
  if (reading.acceptLanguage === null) marks.add('language-missing')
  // A hop has rewritten the request, so the case and order of its headers are the hop's.
  if (isRelayed(print) || isHttp3) return
  const isHttp1 = head.version !== '20'
  if (isHttp1 && !reading.hasCapitals) marks.add('header-case-odd')
  const order = orders.compare(engine, isHttp1 ? 'h1' : 'h2', reading)
  if (order !== 'unknown') marks.add(order === 'agrees' ? 'header-order-agrees' : 'header-order-disagrees')
}

/** The fingerprints of the connection were reported by a hop in front of the proxy. */
function isRelayed({ ja4Source }: ConnectionPrint): boolean {
  return ja4Source === 'hop'
}

/**
 * For a browser of unknown version. No engine has the TLS of a library, whatever its system is. A text that
 * names an engine alone says too little to believe it with an unknown TLS.
 */
function markPlainStack(marks: EvidenceSet, { software }: Claim, engine: Engine, stack: Stack): void {
  if (stack.engines.has(engine)) marks.add('stack-agrees')
  else if (stack.kind === 'libraries') marks.add('stack-disagrees')
  else if (!stack.isKnown && software?.givesWay === 3)
    marks.add(stack.enginesAlike.has(engine) ? 'stack-alike' : 'stack-unlike')
}

function markStack(marks: EvidenceSet, claim: Claim, engine: Engine, stack: Stack): void {
  if (stack.engines.has(engine)) marks.add('stack-agrees')
  else if (claim.hasForeignTls) return
  else if (stack.kind !== 'unknown') marks.add('stack-disagrees')
  // Only automated browsers and imitators are known to have this stack, so it does not tell whose it is.
  else if (stack.isKnown) return
  else marks.add(stack.enginesAlike.has(engine) ? 'stack-alike' : 'stack-unlike')
}

function markTraits(
  marks: EvidenceSet,
  claim: Claim,
  engine: Engine,
  stack: Stack,
  print: ConnectionPrint,
): void {
  if (isTraitsOdd(claim, engine, print)) {
    marks.add('version-disagrees')
    return
  }
  if (isHelloNewer(engine, claim.version, print.traits!)) marks.add('newer-than-claimed')
  if (claim.version < POST_QUANTUM_SINCE[engine] || hasTraits(print.traits!, TRAIT.postQuantum)) return
  // Safari has the TLS of its system. New ones also run on macOS 14 and 15, which send no such key.
  if (claim.platform === 'mac' && engine === 'webkit') return
  // Companies turn it off by policy, and the rest of the hello stays the same.
  const isItsStack = stack.engines.has(engine) || stack.enginesAlike.has(engine)
  marks.add(isItsStack || !offersTls13(print.ja4) ? 'post-quantum-missing' : 'version-disagrees')
}

/** Companies limit browsers to TLS 1.2, which has no use for key shares and compressed certificates. */
function offersTls13(ja4: ConnectionPrint['ja4']): boolean {
  return ja4 === null || ja4.startsWith('13', 1)
}

/**
 * Whether the hello lacks what the engine sends since a version, or has what it did not send before. A
 * missing post-quantum key share is checked separately.
 */
function isTraitsOdd({ version }: Claim, engine: Engine, { traits, ja4 }: ConnectionPrint): boolean {
  const has = (trait: number) => hasTraits(traits!, trait)
  const offersHttp2 = ja4 !== null && ja4.slice(8, 10) === 'h2'
  const isTls13 = offersTls13(ja4)
  // A browser that may not use TLS 1.3 does not offer its cipher suites either.
  if (ja4 !== null && has(TRAIT.tls13Ciphers) !== isTls13) return true
  // RFC 8446 §4.2.9. A Firefox that is set not to resume sessions sends neither this nor the ticket.
  const isDue = isTls13 && (engine !== 'gecko' || has(TRAIT.sessionTicket))
  if (isDue && !has(TRAIT.pskModes)) return true
  switch (engine) {
    case 'blink':
      if (!has(TRAIT.greaseCiphers)) return true
      if (version >= 91 && isTls13 && offersHttp2 && !has(TRAIT.alps)) return true
      if (version >= 70 && isTls13 && !has(TRAIT.compressCertificate)) return true
      return version < 124 && has(TRAIT.postQuantum)
    case 'gecko':
      if (has(TRAIT.greaseCiphers) || !has(TRAIT.recordSizeLimit)) return true
      if (version >= 91 && isTls13 && !has(TRAIT.delegatedCredentials)) return true
      return version < 118 && has(TRAIT.postQuantum)
    case 'webkit':
      // Apple's TLS resumes no sessions over TCP.
      return !has(TRAIT.greaseCiphers) || has(TRAIT.sessionTicket) || (version < 18 && has(TRAIT.postQuantum))
    case 'other':
      return false
  }
}

function markHttp2(
  marks: EvidenceSet,
  claim: Claim,
  engine: Engine,
  stack: Stack,
  print: ConnectionPrint,
): void {
  const apple = engine === 'webkit' && !claim.hasForeignTls ? appleOpening(claim, print) : 'fine'
  if (apple === 'odd') marks.add('http2-disagrees')
  else if (apple === 'unlike') marks.add('http2-unlike')
  else if (stack.http2Engines.has(engine)) marks.add('http2-agrees')
  else if (claim.hasForeignTls) return
  else if (isHttp2Odd(engine, print.http2!)) marks.add('http2-disagrees')
  else marks.add('http2-unlike')
}

/**
 * Compares an opening with that of Apple's network stack, which all browsers on Apple's systems use. Up to
 * macOS 15 and iOS 18 it gives each page that a person opens a stream priority. Later systems have a
 * post-quantum key instead; one without may have turned it off. The sources are in signatures/README.md.
 */
function appleOpening(
  { version }: Claim,
  { pageWeight, traits }: ConnectionPrint,
): 'fine' | 'unlike' | 'odd' {
  if (pageWeight === null || traits === null) return 'fine'
  const hasKey = hasTraits(traits, TRAIT.postQuantum)
  if (hasKey === (pageWeight === 0)) return 'fine'
  return !hasKey && version >= POST_QUANTUM_SINCE.webkit ? 'unlike' : 'odd'
}

/** Checks what all versions of an engine have had in common for years. */
function isHttp2Odd(engine: Engine, http2: string): boolean {
  if (!PSEUDO_ORDERS[engine].includes(http2.slice(http2.lastIndexOf('|') + 1))) return true
  if (engine === 'webkit') return APPLE_NEVER_SETS.test(http2)
  return !http2.startsWith('1:65536;') || (engine === 'blink' && BLINK_NEVER_SETS.test(http2))
}

function markSecureHeaders(
  marks: EvidenceSet,
  claim: Claim,
  engine: Engine,
  reading: Reading,
  isByHop: boolean,
): void {
  const { version, isEmbedded } = claim
  if (engine === 'blink' && version >= 90 && !isEmbedded && reading.clientHints === null)
    marks.add('client-hints-missing')
  const since = FETCH_METADATA_SINCE[engine]
  const isDue = version >= since && !(isEmbedded && engine === 'webkit')
  if (isDue && reading.fetchMode === null && reading.fetchSite === null) marks.add('fetch-metadata-missing')
  if (isDue && !isByHop) markEncoding(marks, claim, engine, reading.acceptEncoding)
}

function markEncoding(
  marks: EvidenceSet,
  { version, isEmbedded }: Claim,
  engine: Engine,
  encodings: string | null,
): void {
  if (encodings === ENCODINGS_TODAY && mayKnowZstd(engine, version)) return
  if (encodings === null || !isOfBrowser(encodings)) marks.add('encoding-disagrees')
  else if (isEmbedded) return
  else if (isEncodingOlder(engine, version, encodings)) marks.add('encoding-disagrees')
  else if (isEncodingNewer(engine, version, encodings)) marks.add('newer-than-claimed')
}

/** All engines write them in this order. Media are requested with `identity`. */
function isOfBrowser(acceptEncoding: string): boolean {
  return acceptEncoding.startsWith('gzip, deflate, br') || acceptEncoding.startsWith('identity')
}

/**
 * Fetch Metadata Request Headers §2: headers that no page makes a browser send together. One that is missing is
 * `markMissing`'s.
 */
function isFetchMetadataOdd(head: RequestHead, reading: Reading): boolean {
  const { fetchMode, fetchSite, fetchDest, accept, contentType } = reading
  // Extensions and proxies remove single headers. The fetch of a runtime sends only the mode.
  if (fetchSite === null && fetchDest === null) return true
  if (fetchMode !== 'navigate') {
    return reading.has(HEADER['sec-fetch-user']) || (fetchDest === 'document' && fetchMode !== null)
  }
  if (fetchDest !== null && !NAVIGATION_TARGETS.has(fetchDest)) return true
  if (head.method !== 'GET' && contentType?.startsWith('application/json') === true) return true
  return accept === '*/*'
}

/** Marks how many headers are missing that the engine sends with every request of this kind: one, or more. */
function markMissing(
  marks: EvidenceSet,
  claim: Claim,
  engine: Engine,
  head: RequestHead,
  reading: Reading,
): void {
  const missing = missingHeaders(claim, engine, head, reading)
  if (missing > 0) marks.add(missing > 1 ? 'several-headers-missing' : 'headers-missing')
}

function missingHeaders(claim: Claim, engine: Engine, head: RequestHead, reading: Reading): number {
  const { fetchMode, fetchSite, fetchDest, accept, contentType } = reading
  let missing = 0
  if (fetchMode !== null && (fetchSite === null) !== (fetchDest === null)) missing++
  if (fetchMode === 'navigate' && accept === null) missing++
  // A form submission has a content-type.
  if (fetchMode === 'navigate' && head.method === 'POST' && contentType === null) missing++
  if (engine !== 'blink' && engine !== 'gecko') return missing
  const isPage = fetchMode === 'navigate' && fetchDest === 'document'
  if (isPage && !reading.has(HEADER['upgrade-insecure-requests'])) missing++
  if (head.version !== '20' || head.method === 'CONNECT') return missing
  if (engine === 'gecko') return claim.version >= 90 && !reading.has(HEADER.te) ? missing + 1 : missing
  const hasPriority = claim.version < PRIORITY_SINCE || claim.isEmbedded || reading.has(HEADER.priority)
  return isPage && !hasPriority ? missing + 1 : missing
}

function isClientHintsOdd(claim: Claim, engine: Engine, reading: Reading): boolean {
  if (engine !== 'blink') return true
  const hints = reading.clientHints!
  if (!hints.includes(`v="${claim.version}"`)) return true
  if (isGreaseOdd(claim.version, hints)) return true
  const platform = reading.clientHintsPlatform
  if (platform === null || claim.platform === null) return false
  const names = HINTED_PLATFORMS[claim.platform]
  return names !== undefined && !names.includes(platform)
}

/** Chromium derives the GREASE brand from its version (User-Agent Client Hints, GREASE). */
function isGreaseOdd(version: number, hints: string): boolean {
  if (version < GREASE_SINCE || version > GREASE_UNTIL) return false
  return !hints.includes(GREASE_BRANDS[version - GREASE_SINCE]!)
}

function greaseBrand(version: number): string {
  const first = GREASE_CHARACTERS[version % GREASE_CHARACTERS.length]
  const second = GREASE_CHARACTERS[(version + 1) % GREASE_CHARACTERS.length]
  return `"Not${first}A${second}Brand";v="${GREASE_VERSIONS[version % 3]}"`
}

/** HEADER_TABLE_SIZE (1) or MAX_HEADER_LIST_SIZE (6). */
const APPLE_NEVER_SETS = /^(?:[^|]*;)?[16]:/
/** MAX_FRAME_SIZE (5). */
const BLINK_NEVER_SETS = /^[^|]*;5:/
const GREASE_CHARACTERS = [' ', '(', ':', '-', '.', '/', ')', ';', '=', '?', '_']
const GREASE_VERSIONS = ['8', '99', '24']
const GREASE_SINCE = 110
/** The rule for later versions is not known yet. */
const GREASE_UNTIL = 157
const GREASE_BRANDS = Array.from({ length: GREASE_UNTIL - GREASE_SINCE + 1 }, (_, i) =>
  greaseBrand(GREASE_SINCE + i),
)
/** Of all engines, for a page. */
const ENCODINGS_TODAY = 'gzip, deflate, br, zstd'
const PRIORITY_SINCE = 125
const POST_QUANTUM_SINCE: Readonly<Record<Engine, number>> = {
  blink: 131,
  gecko: 132,
  webkit: 26,
  other: Number.POSITIVE_INFINITY,
}
const PSEUDO_ORDERS: Readonly<Record<Engine, readonly string[]>> = {
  blink: ['m,a,s,p'],
  gecko: ['m,p,a,s'],
  webkit: ['m,s,p,a', 'm,s,a,p'],
  other: [],
}
const FETCH_METADATA_SINCE: Readonly<Record<Engine, number>> = {
  blink: 80,
  gecko: 90,
  webkit: 17,
  other: 9999,
}
const NAVIGATION_TARGETS: ReadonlySet<string> = new Set([
  'document',
  'iframe',
  'frame',
  'embed',
  'object',
  'fencedframe',
])
const HINTED_PLATFORMS: Readonly<Record<string, readonly string[]>> = {
  windows: ['"Windows"'],
  mac: ['"macOS"', '"Mac OS X"'],
  android: ['"Android"'],
  chromeos: ['"Chrome OS"', '"Chromium OS"'],
  linux: ['"Linux"', '"Android"', '"Chrome OS"', '"Chromium OS"', '"Unknown"'],
}
