import type { Brand } from '../shared/brand.ts'
import type { ClientHello, Transport } from '../wire/client-hello.ts'
import { EXT_SERVER_NAME } from '../wire/client-hello.ts'
import { isGrease } from './grease.ts'
import {
  countWithout,
  EARLY_DATA,
  GREASE,
  type LeftOut,
  PRE_SHARED_KEY,
  SHOWN_ELSEWHERE,
} from './left-out.ts'
import { FingerprintText } from './text.ts'

export type Ja4 = Brand<string, 'Ja4'>

/** JA4 and its variants: not hashed (`_r`), not sorted (`_o`), or neither (`_ro`). */
export interface Ja4Forms {
  readonly ja4: Ja4
  readonly ja4_r: string
  readonly ja4_o: string
  readonly ja4_ro: string
}

/**
 * The JA4 of a client. Spec: FoxIO ja4/technical_details/JA4.md. `text`: working memory, here and below; a
 * caller that reads many hellos passes its own.
 */
export function ja4(hello: ClientHello, transport: Transport, text = new FingerprintText()): Ja4 {
  const b = text.hashSorted(hello.ciphers)
  return `${prefix(hello, transport)}_${b}_${sortedExtensions(hello, text).hash12()}` as Ja4
}

/**
 * The JA4 that a hello would have if it did not resume a session: without pre_shared_key and early_data.
 * `null` if it does not resume one.
 */
export function unresumedJa4(
  hello: ClientHello,
  transport: Transport,
  text = new FingerprintText(),
): Ja4 | null {
  if (!hello.extensions.includes(PRE_SHARED_KEY)) return null
  const extensions = hello.extensions.filter((type) => type !== PRE_SHARED_KEY && type !== EARLY_DATA)
  return ja4({ ...hello, extensions }, transport, text)
}

export function ja4Forms(hello: ClientHello, transport: Transport, text = new FingerprintText()): Ja4Forms {
  const a = prefix(hello, transport)
  const { ciphers } = hello
  return {
    ja4: ja4(hello, transport, text),
    ja4_r: `${a}_${text.clear().sorted(ciphers).text()}_${sortedExtensions(hello, text).text()}`,
    ja4_o: `${a}_${text.clear().list(ciphers).hash12()}_${sentExtensions(hello, text).hash12()}`,
    ja4_ro: `${a}_${text.clear().list(ciphers).text()}_${sentExtensions(hello, text).text()}`,
  }
}

/** Part a. It counts SNI and ALPN among the extensions, though part c leaves them out. */
export function prefix(hello: ClientHello, transport: Transport, leftOut: LeftOut = GREASE): string {
  const version = versionMark(clientVersion(hello, transport))
  const sni = hello.extensions.includes(EXT_SERVER_NAME) ? 'd' : 'i' // its content is irrelevant
  const counts =
    twoDigits(countWithout(hello.ciphers, GREASE)) + twoDigits(countWithout(hello.extensions, leftOut))
  return `${TRANSPORT_MARKS[transport]}${version}${sni}${counts}${alpnMark(hello.alpn[0])}`
}

/**
 * Part c: the sorted extensions, then the signature algorithms in the order sent, because that order is a
 * signal.
 */
export function sortedExtensions(
  hello: ClientHello,
  text: FingerprintText,
  leftOut: LeftOut = GREASE,
): FingerprintText {
  return text
    .clear()
    .sorted(hello.extensions, leftOut | SHOWN_ELSEWHERE)
    .section(hello.signatureAlgorithms)
}

/**
 * All extensions as sent, with SNI and ALPN. If there are no others, the list is still hashed: the spec's
 * zeros are only for an empty list. The Rust and Zeek references do the same, the Python one does not.
 */
function sentExtensions(hello: ClientHello, text: FingerprintText): FingerprintText {
  return text.clear().list(hello.extensions).section(hello.signatureAlgorithms)
}

/**
 * The newest version in supported_versions, even if the legacy field is higher; without the extension, the
 * legacy field. If the extension lists no version, the version is unknown (the references fail there). A
 * draft's number (0x7f1c) is higher than TLS 1.3's and not in the table: the rule is applied literally.
 */
function clientVersion(hello: ClientHello, transport: Transport): number {
  if (hello.supportedVersions === null) return hello.legacyVersion
  let newest = 0
  for (const version of hello.supportedVersions) {
    if (!isGrease(version) && isNewer(version, newest, transport)) newest = version
  }
  return newest
}

/** DTLS versions count downwards from 0xfeff (RFC 9147 §5.3), so "highest" means newest. */
function isNewer(version: number, than: number, transport: Transport): boolean {
  const bothDtls = transport === 'dtls' && version >> 8 === 0xfe && than >> 8 === 0xfe
  return bothDtls ? version < than : version > than
}

export function versionMark(version: number): string {
  return VERSION_MARKS.get(version) ?? '00'
}

export function twoDigits(counted: number): string {
  return counted > 99 ? '99' : counted < 10 ? `0${counted}` : `${counted}`
}

/**
 * The first and last character of the protocol name, or of its hex form unless both are ASCII letters or
 * digits. The rule works on bytes. GREASE names are no exception.
 */
export function alpnMark(name: Uint8Array | undefined): string {
  if (name === undefined || name.length === 0) return '00'
  const first = name[0]!
  const last = name[name.length - 1]!
  if (isAlphanumeric(first) && isAlphanumeric(last)) return String.fromCharCode(first, last)
  return HEX_DIGITS[first >> 4]! + HEX_DIGITS[last & 15]!
}

function isAlphanumeric(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a)
}

export const TRANSPORT_MARKS: Readonly<Record<Transport, string>> = { tcp: 't', quic: 'q', dtls: 'd' }

const VERSION_MARKS: ReadonlyMap<number, string> = new Map([
  [0x0304, '13'],
  [0x0303, '12'],
  [0x0302, '11'],
  [0x0301, '10'],
  [0x0300, 's3'],
  [0x0002, 's2'],
  [0xfeff, 'd1'],
  [0xfefd, 'd2'],
  [0xfefc, 'd3'],
])
const HEX_DIGITS = '0123456789abcdef'
