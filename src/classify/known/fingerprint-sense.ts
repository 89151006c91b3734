import { isGrease } from '../../fingerprint/grease.ts'
import { type Ja4Type, partsOfFingerprint } from './fingerprint-form.ts'

/** A problem of a fingerprint that has the right form. */
export interface Doubt {
  /**
   * `impossible`: its parts contradict each other, so no client can send it. `empty`: it contains no
   * information. `odd`: hardly any client sends it. `one_visitor`: it depends on one visitor's cookies, not
   * on the program.
   */
  readonly code: 'impossible' | 'empty' | 'odd' | 'one_visitor'
  readonly detail: string
}

/** The problems of a fingerprint on its own. It must have the form of its type, without `*`. */
export function doubtsAbout(type: Ja4Type, value: string): readonly Doubt[] {
  const parts = partsOfFingerprint(type, value)
  switch (type) {
    case 'ja4':
      return said(ofHello(parts))
    case 'ja4s':
      return said(ofAnswer(parts))
    case 'ja4h':
      return said(ofHeaders(parts))
    case 'ja4x':
      return said([[parts.every((part) => part === NONE), 'empty', 'it describes an empty certificate']])
  }
}

type Parts = readonly string[]
type Rule = readonly [holds: boolean, code: Doubt['code'], detail: string]

function said(rules: readonly Rule[]): readonly Doubt[] {
  return rules.filter(([holds]) => holds).map(([, code, detail]) => ({ code, detail }))
}

function ofHello([a = '', b, c]: Parts): readonly Rule[] {
  const [transport, version, sni, alpn] = [a[0], a.slice(1, 3), a[3], a.slice(8)]
  const ciphers = Number(a.slice(4, 6))
  const extensions = Number(a.slice(6, 8))
  /** Part c covers all extensions except these. */
  const elsewhere = (sni === 'd' ? 1 : 0) + (alpn === '00' ? 0 : 1)
  const isDatagram = version.startsWith('d')
  return [
    [b === NONE && c === NONE, 'empty', 'it describes a ClientHello without ciphers and extensions'],
    [
      (ciphers === 0) !== (b === NONE),
      'impossible',
      `part a counts ${ciphers} ciphers, but part b ${has(b)}`,
    ],
    [
      extensions < elsewhere,
      'impossible',
      `part a counts ${extensions} extensions, but implies at least ${elsewhere}`,
    ],
    [
      extensions >= elsewhere && extensions - elsewhere === 0 && c !== NONE,
      'impossible',
      `part a counts ${extensions} extensions, none of which belongs in part c, but part c ${has(c)}`,
    ],
    [
      extensions - elsewhere > 1 && c === NONE,
      'impossible',
      `part a counts ${extensions} extensions, but part c ${has(c)}`,
    ],
    [version === '13' && c === NONE, 'odd', 'TLS 1.3 needs an extension, but part c has none'],
    [
      transport === 'd' ? !isDatagram && version !== '00' : isDatagram,
      'odd',
      `version ${version} is not used over ${TRANSPORTS.get(transport!)}`,
    ],
    [transport === 'q' && version !== '13' && !isDatagram, 'odd', 'QUIC always uses TLS 1.3'],
    [transport === 'q' && (alpn === 'h1' || alpn === 'h2'), 'odd', `${alpn} is not used over QUIC`],
    [transport === 't' && alpn === 'h3', 'odd', 'h3 is not used over TCP'],
    [isMadeUp(b) || isMadeUp(c), 'odd', 'a hash that repeats one digit is probably made up'],
  ]
}

function ofAnswer([a = '', cipher = '', c]: Parts): readonly Rule[] {
  const version = a.slice(1, 3)
  const extensions = Number(a.slice(3, 5))
  const chosen = Number.parseInt(cipher, 16)
  const isOf13 = chosen >> 8 === 0x13
  return [
    [isGrease(chosen), 'impossible', `${cipher} is a GREASE value, which no server chooses`],
    [
      chosen === 0x00ff || chosen === 0x5600,
      'impossible',
      `${cipher} is a signaling value, which no server chooses`,
    ],
    [
      (extensions === 0) !== (c === NONE),
      'impossible',
      `part a counts ${extensions} extensions, but part c ${has(c)}`,
    ],
    [
      isOf13 && version !== '13' && version !== '00',
      'impossible',
      `the cipher ${cipher} exists only in TLS 1.3`,
    ],
    [version === '13' && !isOf13 && !OTHERS_OF_13.has(chosen), 'odd', `${cipher} is not a TLS 1.3 cipher`],
    [isMadeUp(c), 'odd', 'a hash that repeats one digit is probably made up'],
  ]
}

function ofHeaders([a = '', b, c, d]: Parts): readonly Rule[] {
  const [version, cookie, language] = [a.slice(2, 4), a[4], a.slice(8)]
  const headers = Number(a.slice(6, 8))
  return [
    [headers === 0 && cookie === 'n', 'empty', 'it describes a request without headers'],
    [
      (headers === 0) !== (b === NONE),
      'impossible',
      `part a counts ${headers} headers, but part b ${has(b)}`,
    ],
    [
      cookie === 'n' && (c !== NONE || d !== NONE),
      'impossible',
      'part a says that there are no cookies, but part c or d has some',
    ],
    [d === NONE && c !== NONE, 'impossible', 'part c has cookie names, but part d has no cookies'],
    [headers === 0 && language !== '0000', 'impossible', 'it has a language, but no headers'],
    [headers === 0 && version === '11', 'odd', 'HTTP/1.1 requires a Host header'],
    [d !== NONE, 'one_visitor', 'part d depends on cookie values, so it matches one visitor only'],
    [isMadeUp(b), 'odd', 'a hash that repeats one digit is probably made up'],
  ]
}

function has(hash: string | undefined): string {
  return hash === NONE ? 'has none' : 'has some'
}

function isMadeUp(hash: string | undefined): boolean {
  return hash !== NONE && new Set(hash).size === 1
}

/** The hash that stands for an empty list. */
const NONE = '000000000000'
const TRANSPORTS: ReadonlyMap<string, string> = new Map([
  ['t', 'TCP'],
  ['q', 'QUIC'],
  ['d', 'DTLS'],
])
/** ShangMi (RFC 8998), GOST (RFC 9367), and ciphers without encryption (RFC 9150). */
const OTHERS_OF_13: ReadonlySet<number> = new Set([
  0x00c6, 0x00c7, 0xc103, 0xc104, 0xc105, 0xc106, 0xc0b4, 0xc0b5,
])
