// @peculiar/x509 needs this polyfill to be loaded first.
import 'reflect-metadata'
import { randomBytes, webcrypto } from 'node:crypto'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'

/** Both in PEM. */
export interface MadeCertificate {
  readonly certificate: string
  readonly key: string
}

/** A CA that may only issue for `names`, their subdomains, and this machine's loopback addresses. */
export async function makeCa(
  commonName: string,
  names: readonly string[],
  nowMs: number,
  days: number,
): Promise<MadeCertificate> {
  const keys = await newKeys()
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...validity(nowMs, days),
    name: `CN=${commonName}`,
    keys,
    signingAlgorithm: SIGNING,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      new Extension(NAME_CONSTRAINTS, true, nameConstraints(names)),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { certificate: pem(certificate), key: await exportKey(keys.privateKey) }
}

export async function makeLeaf(
  ca: MadeCertificate,
  names: readonly string[],
  addresses: readonly string[],
  nowMs: number,
  days: number,
): Promise<MadeCertificate> {
  const issuer = new X509Certificate(ca.certificate)
  const keys = await newKeys()
  const alternatives = [
    ...names.map((value) => ({ type: 'dns' as const, value })),
    ...addresses.map((value) => ({ type: 'ip' as const, value })),
  ]
  const certificate = await X509CertificateGenerator.create({
    ...validity(nowMs, days),
    subject: `CN=${names[0]}`,
    issuer: issuer.subject,
    publicKey: keys.publicKey,
    signingKey: await importKey(ca.key),
    signingAlgorithm: SIGNING,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([SERVER_AUTH]),
      new SubjectAlternativeNameExtension(alternatives),
      await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { certificate: pem(certificate), key: await exportKey(keys.privateKey) }
}

function validity(nowMs: number, days: number) {
  return {
    serialNumber: serialNumber(),
    notBefore: new Date(nowMs - CLOCK_SKEW_MS),
    notAfter: new Date(nowMs - CLOCK_SKEW_MS + days * DAY_MS),
  }
}

/** RFC 5280 §4.1.2.2: positive, at most 20 bytes. This one has 126 random bits. */
function serialNumber(): string {
  const bytes = randomBytes(16)
  bytes[0] = (bytes[0]! & 0x3f) | 0x40
  return bytes.toString('hex')
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(P256, true, ['sign', 'verify'])
}

async function importKey(text: string): Promise<webcrypto.CryptoKey> {
  const der = Buffer.from(text.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64')
  return webcrypto.subtle.importKey('pkcs8', der, P256, false, ['sign'])
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const base64 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key)).toString('base64')
  const lines = base64.match(/.{1,64}/g) ?? []
  return ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----', ''].join('\n')
}

function pem(certificate: X509Certificate): string {
  return `${certificate.toString('pem')}\n`
}

/** RFC 5280 §4.2.1.10. The library cannot write this extension. */
function nameConstraints(names: readonly string[]): Buffer {
  const subtrees = [
    ...names.map((name) => der(DNS_NAME, Buffer.from(name, 'ascii'))),
    ...LOOPBACK.map((addressAndMask) => der(IP_ADDRESS, addressAndMask)),
  ].map((base) => der(SEQUENCE, base))
  return der(SEQUENCE, der(PERMITTED, Buffer.concat(subtrees)))
}

function der(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([tag, ...derLength(content.length)]), content])
}

/**
 * X.690 §8.1.3 in the shortest form, which DER requires (§10.1). Two bytes suffice for two names of 253
 * bytes.
 */
function derLength(length: number): number[] {
  if (length < 0x80) return [length]
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
}

const P256 = { name: 'ECDSA', namedCurve: 'P-256' }
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' }
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1'
const NAME_CONSTRAINTS = '2.5.29.30'
const SEQUENCE = 0x30
const PERMITTED = 0xa0
const DNS_NAME = 0x82
const IP_ADDRESS = 0x87
/** 127.0.0.0/8 and ::1, each with its mask. */
const LOOPBACK = [
  Buffer.from('7f000000ff000000', 'hex'),
  Buffer.from(`${'00'.repeat(15)}01${'ff'.repeat(16)}`, 'hex'),
]
/** For clients whose clock is slightly behind. */
const CLOCK_SKEW_MS = 3_600_000
const DAY_MS = 86_400_000
