import type { Brand } from '../shared/brand.ts'
import type { ClientHello } from '../wire/client-hello.ts'
import { isGrease } from './grease.ts'

/** A set of `TRAIT`s: what a hello shows beyond its JA4, which leaves it out or hides it in a hash. */
export type HelloTraits = Brand<number, 'HelloTraits'>

export type TraitName = keyof typeof TRAIT

export function helloTraits(hello: ClientHello): HelloTraits {
  const { ciphers, extensions, groups } = hello
  let traits = 0
  for (let i = 0; i < ciphers.length; i++) {
    const cipher = ciphers[i]!
    if (isGrease(cipher)) traits |= TRAIT.greaseCiphers
    else if (cipher >> 8 === TLS13_CIPHERS) traits |= TRAIT.tls13Ciphers
  }
  for (let i = 0; i < extensions.length; i++) {
    const type = extensions[i]!
    traits |= isGrease(type) ? TRAIT.greaseExtensions : (EXTENSION_TRAITS.get(type) ?? 0)
  }
  for (let i = 0; i < groups.length; i++) {
    const group = groups[i]!
    if (isGrease(group)) traits |= TRAIT.greaseGroups
    else if (POST_QUANTUM_GROUPS.has(group)) traits |= TRAIT.postQuantum
    if (group === X25519_MLKEM768) traits |= TRAIT.mlKem
  }
  return traits as HelloTraits
}

/** Whether the traits include all of `wanted`, which is several `TRAIT`s joined by `|`. */
export function hasTraits(traits: HelloTraits, wanted: number): boolean {
  return (traits & wanted) === wanted
}

export function traitNames(traits: HelloTraits): readonly TraitName[] {
  return TRAIT_NAMES.filter((name) => (traits & TRAIT[name]) !== 0)
}

export const TRAIT = {
  greaseCiphers: 1 << 0,
  greaseExtensions: 1 << 1,
  greaseGroups: 1 << 2,
  /** Application-Layer Protocol Settings, under its old or its new number. */
  alps: 1 << 3,
  encryptedClientHello: 1 << 4,
  compressCertificate: 1 << 5,
  /** A supported group resists quantum computers. */
  postQuantum: 1 << 6,
  sessionTicket: 1 << 7,
  preSharedKey: 1 << 8,
  earlyData: 1 << 9,
  padding: 1 << 10,
  delegatedCredentials: 1 << 11,
  recordSizeLimit: 1 << 12,
  extendedMasterSecret: 1 << 13,
  renegotiationInfo: 1 << 14,
  signedCertificateTimestamps: 1 << 15,
  statusRequest: 1 << 16,
  trustAnchors: 1 << 17,
  /** Application-Layer Protocol Settings, under its new number. */
  newAlps: 1 << 18,
  /** X25519MLKEM768, which replaced the drafts. */
  mlKem: 1 << 19,
  /** psk_key_exchange_modes, without which TLS 1.3 resumes no session. */
  pskModes: 1 << 20,
  /** A cipher suite of TLS 1.3, of which TLS 1.2 has no use. */
  tls13Ciphers: 1 << 21,
} as const

/** The first byte of these suites (RFC 8446 §B.4). */
const TLS13_CIPHERS = 0x13

const TRAIT_NAMES = Object.keys(TRAIT) as TraitName[]

/** IANA's TLS ExtensionType Values. ALPS and trust anchors have the numbers that browsers send. */
const EXTENSION_TRAITS: ReadonlyMap<number, number> = new Map([
  [5, TRAIT.statusRequest],
  [18, TRAIT.signedCertificateTimestamps],
  [21, TRAIT.padding],
  [23, TRAIT.extendedMasterSecret],
  [27, TRAIT.compressCertificate],
  [28, TRAIT.recordSizeLimit],
  [34, TRAIT.delegatedCredentials],
  [35, TRAIT.sessionTicket],
  [41, TRAIT.preSharedKey],
  [42, TRAIT.earlyData],
  [45, TRAIT.pskModes],
  [17513, TRAIT.alps],
  [17613, TRAIT.alps | TRAIT.newAlps],
  [0xca34, TRAIT.trustAnchors],
  [65037, TRAIT.encryptedClientHello],
  [0xff01, TRAIT.renegotiationInfo],
])

const X25519_MLKEM768 = 4588

/** IANA's TLS Supported Groups: ML-KEM alone and with a curve, and the drafts that browsers sent earlier. */
const POST_QUANTUM_GROUPS: ReadonlySet<number> = new Set([
  ...[512, 513, 514], // MLKEM512, 768, 1024
  ...[4587, X25519_MLKEM768, 4589], // SecP256r1MLKEM768, X25519MLKEM768, SecP384r1MLKEM1024
  ...[16696, 25497, 25498], // CECPQ2, X25519Kyber768Draft00, SecP256r1Kyber768Draft00
])
