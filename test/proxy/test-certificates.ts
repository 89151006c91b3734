import { generateKeyPairSync, randomBytes } from 'node:crypto'
import forge from 'node-forge'
import { type MadeCertificate, makeCa, makeLeaf } from '../../src/proxy/tls/certificate-maker.ts'
import type { KeyPair } from '../../src/proxy/tls/key-pair.ts'

/** A CA for everything under example.test and for localhost. */
export function testCa(nowMs = Date.now()): Promise<MadeCertificate> {
  return makeCa('A test CA', ['example.test', 'localhost'], nowMs, 400)
}

/** ECDSA; `days` from `nowMs` on, whichever time that is. */
export function testLeaf(
  ca: MadeCertificate,
  names: readonly string[],
  nowMs = Date.now(),
  days = 90,
): Promise<MadeCertificate> {
  return makeLeaf(ca, names, ['127.0.0.1', '::1'], nowMs, days)
}

/** RSA, signed by itself. */
export function testRsa(names: readonly string[], modulusLength = 2048): MadeCertificate {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  const certificate = forge.pki.createCertificate()
  certificate.publicKey = forge.pki.publicKeyFromPem(publicKey)
  certificate.serialNumber = `01${randomBytes(8).toString('hex')}`
  certificate.validity.notBefore = new Date(Date.now() - 3_600_000)
  certificate.validity.notAfter = new Date(Date.now() + 90 * 86_400_000)
  const subject = [{ name: 'commonName', value: names[0]! }]
  certificate.setSubject(subject)
  certificate.setIssuer(subject)
  const altNames = names.map((value) => ({ type: 2, value }))
  certificate.setExtensions([{ name: 'subjectAltName', altNames }])
  certificate.sign(forge.pki.privateKeyFromPem(privateKey), forge.md.sha256.create())
  return { certificate: forge.pki.certificateToPem(certificate), key: privateKey }
}

/** What loading would have made of it. */
export function testPair(
  { certificate, key }: MadeCertificate,
  dnsNames: readonly string[],
  more: Partial<KeyPair> = {},
): KeyPair {
  const fingerprint = randomBytes(32).toString('hex')
  return {
    name: dnsNames[0] ?? 'none',
    chain: certificate,
    key,
    keyType: 'ec',
    signatureScheme: 0x0403,
    dnsNames,
    notAfterMs: Date.now() + 86_400_000,
    fingerprint,
    ...more,
  }
}
