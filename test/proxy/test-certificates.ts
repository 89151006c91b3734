import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type forge from 'node-forge'
import type { MadeCertificate } from '../../src/proxy/tls/certificate-maker.ts'
import type { KeyPair } from '../../src/proxy/tls/key-pair.ts'

/** A CA for everything under example.test and for localhost. */
export function testCa(nowMs?: number): Promise<MadeCertificate> {
  const make = async (): Promise<MadeCertificate> => {
    const { makeCa } = await import('../../src/proxy/tls/certificate-maker.ts')
    return makeCa('A test CA', ['example.test', 'localhost'], nowMs ?? Date.now(), 400)
  }
  return nowMs === undefined ? kept(['ca'], make) : make()
}

/** ECDSA; `days` from `nowMs` on, whichever time that is. */
export function testLeaf(
  ca: MadeCertificate,
  names: readonly string[],
  nowMs?: number,
  days = 90,
): Promise<MadeCertificate> {
  const make = async (): Promise<MadeCertificate> => {
    const { makeLeaf } = await import('../../src/proxy/tls/certificate-maker.ts')
    return makeLeaf(ca, names, ['127.0.0.1', '::1'], nowMs ?? Date.now(), days)
  }
  return nowMs === undefined ? kept(['leaf', ca.certificate, names, days], make) : make()
}

/** RSA, signed by itself. */
export function testRsa(names: readonly string[], modulusLength = 2048): MadeCertificate {
  const path = placeOf(['rsa', names, modulusLength])
  return readKept(path) ?? keep(path, makeRsa(names, modulusLength))
}

function makeRsa(names: readonly string[], modulusLength: number): MadeCertificate {
  const { md, pki } = createRequire(import.meta.url)('node-forge') as typeof forge
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  const certificate = pki.createCertificate()
  certificate.publicKey = pki.publicKeyFromPem(publicKey)
  certificate.serialNumber = `01${randomBytes(8).toString('hex')}`
  certificate.validity.notBefore = new Date(Date.now() - 3_600_000)
  certificate.validity.notAfter = new Date(Date.now() + 90 * 86_400_000)
  const subject = [{ name: 'commonName', value: names[0]! }]
  certificate.setSubject(subject)
  certificate.setIssuer(subject)
  const altNames = names.map((value) => ({ type: 2, value }))
  certificate.setExtensions([{ name: 'subjectAltName', altNames }])
  certificate.sign(pki.privateKeyFromPem(privateKey), md.sha256.create())
  return { certificate: pki.certificateToPem(certificate), key: privateKey }
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

/**
 * Certificates take longer to make than most tests. They are made once a day for all test files: the second one that
 * a process asks for with the same `facts` is another than the first, and so on.
 */
async function kept(
  facts: readonly unknown[],
  make: () => Promise<MadeCertificate>,
): Promise<MadeCertificate> {
  const path = placeOf(facts)
  return readKept(path) ?? keep(path, await make())
}

function placeOf(facts: readonly unknown[]): string {
  const text = JSON.stringify(facts)
  const count = counts.get(text) ?? 0
  counts.set(text, count + 1)
  return `${FOLDER}/${createHash('sha256').update(text).digest('hex').slice(0, 32)}-${count}.json`
}

function readKept(path: string): MadeCertificate | null {
  const file = statSync(path, { throwIfNoEntry: false })
  if (file === undefined || Date.now() - file.mtimeMs > DAY_MS) return null
  return JSON.parse(readFileSync(path, 'utf8'))
}

function keep(path: string, made: MadeCertificate): MadeCertificate {
  mkdirSync(FOLDER, { recursive: true })
  const { certificate, key } = made
  writeFileSync(`${path}.${process.pid}`, JSON.stringify({ certificate, key }), { mode: 0o600 })
  renameSync(`${path}.${process.pid}`, path)
  return made
}

const FOLDER = fileURLToPath(new URL('../../.tap/certificates', import.meta.url))
const DAY_MS = 86_400_000
const counts = new Map<string, number>()
