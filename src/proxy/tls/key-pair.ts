import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { Fault } from '../../shared/fault.ts'
import { readBounded } from '../../shared/bounded-file.ts'

/** The files of a certificate and its key. */
export interface KeyPairSource {
  /** PEM with the chain (and optionally the key), DER, or PKCS#12. */
  readonly certificateFile: string
  /** `null`: the key is in `certificateFile`. */
  readonly keyFile: string | null
  readonly passphrase: string | null
}

/** A validated certificate with its key, in a form that can be sent to another process. */
export interface KeyPair {
  /** The file it was read from, for messages. */
  readonly name: string
  /** PEM: the leaf first, each certificate followed by its issuer. */
  readonly chain: string
  /** PEM, unencrypted. */
  readonly key: string
  /** `ec`, `rsa`, `ed25519`, … */
  readonly keyType: string
  /** The scheme that a client must list to verify it (RFC 8446 §4.2.3). `null` for RSA, which has many. */
  readonly signatureScheme: number | null
  /** The DNS names it covers, in lower case, possibly with a wildcard. */
  readonly dnsNames: readonly string[]
  readonly notAfterMs: number
  /** SHA-256 of the leaf. */
  readonly fingerprint: string
}

export interface LoadedKeyPairs {
  readonly pairs: readonly KeyPair[]
  /** Problems that do not prevent use but will cause trouble for clients. */
  readonly warnings: readonly string[]
}

/** Reads and checks all pairs. Throws one Fault that lists all problems. */
export async function loadKeyPairs(
  sources: readonly KeyPairSource[],
  nowMs: number,
): Promise<LoadedKeyPairs> {
  const pairs: KeyPair[] = []
  const problems: string[] = []
  const warnings: string[] = []
  for (const source of sources) {
    try {
      pairs.push(await loadKeyPair(source, nowMs, warnings))
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      problems.push(error.message)
    }
  }
  if (problems.length > 0) throw new Fault('CERTIFICATE_INVALID', problems.join('\n'))
  return { pairs, warnings }
}

async function loadKeyPair(source: KeyPairSource, nowMs: number, warnings: string[]): Promise<KeyPair> {
  const found = await readSource(source)
  const leaf = found.certificates.find((certificate) => certificate.checkPrivateKey(found.key))
  if (leaf === undefined) throw mismatch(source, found)

  const { chain, strangers } = chainOf(leaf, found.certificates)
  const pair: KeyPair = {
    name: source.certificateFile,
    chain: chain.map((certificate) => certificate.toString()).join(''),
    key: found.key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    keyType: leaf.publicKey.asymmetricKeyType ?? 'unknown',
    signatureScheme: signatureScheme(leaf.publicKey),
    dnsNames: dnsNamesOf(leaf),
    notAfterMs: leaf.validToDate.getTime(),
    fingerprint: leaf.fingerprint256,
  }
  tryOut(pair)
  warnings.push(...warningsOf(source, leaf, chain, strangers, nowMs))
  return pair
}

interface Found {
  readonly certificates: readonly X509Certificate[]
  readonly key: KeyObject
}

async function readSource(source: KeyPairSource): Promise<Found> {
  const { certificateFile, keyFile, passphrase } = source
  const bytes = await read(certificateFile)
  if (bytes.includes('-----BEGIN')) {
    const certificates = pemCertificates(certificateFile, bytes.toString('latin1'))
    return { certificates, key: await readKey(keyFile ?? certificateFile, passphrase) }
  }
  const certificate = derCertificate(bytes)
  if (certificate !== null && keyFile !== null)
    return { certificates: [certificate], key: await readKey(keyFile, passphrase) }
  if (certificate !== null)
    throw invalid(certificateFile, 'holds a certificate without a key; name the key file beside it')
  return readPkcs12(certificateFile, bytes, passphrase)
}

async function read(file: string): Promise<Buffer> {
  try {
    return await readBounded(file, FILE_BYTES_MAX)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw invalid(file, READ_FAULTS.get(code ?? '') ?? `cannot be read (${code})`, error)
  }
}

function pemCertificates(file: string, text: string): X509Certificate[] {
  const blocks = [...text.matchAll(PEM_CERTIFICATE)].map(([block]) => block)
  if (blocks.length === 0) {
    if (text.includes('PRIVATE KEY-----'))
      throw invalid(file, 'holds a private key and no certificate; are --cert and --key the wrong way round?')
    if (text.includes('CERTIFICATE REQUEST-----'))
      throw invalid(file, 'holds a certificate request; what the CA made of it is needed')
    throw invalid(file, 'holds no certificate')
  }
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block)
    } catch (error) {
      throw invalid(file, `certificate ${index + 1} of ${blocks.length} in it is damaged`, error)
    }
  })
}

async function readKey(file: string, passphrase: string | null): Promise<KeyObject> {
  const bytes = await read(file)
  const text = bytes.toString('latin1')
  const block = PEM_KEY.exec(text)?.[0]
  if (block === undefined) {
    if (text.includes('BEGIN CERTIFICATE')) throw invalid(file, 'holds a certificate and no private key')
    if (text.includes('PUBLIC KEY-----')) throw invalid(file, 'holds a public key; the private one is needed')
    return derKey(file, bytes)
  }
  const isEncrypted = block.includes('ENCRYPTED')
  if (isEncrypted && passphrase === null) throw invalid(file, 'is encrypted: its passphrase is needed')
  try {
    return createPrivateKey(isEncrypted ? { key: block, passphrase: passphrase! } : block)
  } catch (error) {
    if (!isEncrypted) throw invalid(file, 'the private key in it is damaged', error)
    const { openLegacyKey } = await import('./pkcs12.ts')
    const key = openLegacyKey(block, passphrase!)
    if (key === null) throw invalid(file, 'the passphrase does not open it')
    return key
  }
}

function derKey(file: string, key: Buffer): KeyObject {
  for (const type of ['pkcs8', 'sec1', 'pkcs1'] as const) {
    try {
      return createPrivateKey({ key, format: 'der', type })
    } catch {
      // Try the next type.
    }
  }
  throw invalid(file, 'holds no private key')
}

function derCertificate(bytes: Buffer): X509Certificate | null {
  try {
    return new X509Certificate(bytes)
  } catch {
    return null
  }
}

async function readPkcs12(file: string, bytes: Buffer, passphrase: string | null): Promise<Found> {
  const { openPkcs12 } = await import('./pkcs12.ts')
  const opened = openPkcs12(bytes, passphrase ?? '')
  switch (opened.kind) {
    case 'unreadable':
      throw invalid(file, 'is neither PEM, DER nor PKCS#12')
    case 'wrong-passphrase':
      throw invalid(file, passphrase === null ? 'needs a passphrase' : 'the passphrase does not open it')
    case 'opened': {
      const { certificates, key } = opened
      if (certificates.length === 0) throw invalid(file, 'holds no certificate')
      if (key === null) throw invalid(file, 'holds no private key')
      return { certificates, key }
    }
  }
}

function mismatch({ certificateFile, keyFile }: KeyPairSource, { certificates, key }: Found): Fault {
  const certificateType = certificates[0]!.publicKey.asymmetricKeyType
  const types =
    certificateType === key.asymmetricKeyType
      ? 'both are of the same type, so they are of two different pairs'
      : `the certificate is for an ${certificateType} key, the key is ${key.asymmetricKeyType}`
  return invalid(certificateFile, `does not belong to the key in ${keyFile ?? 'it'}: ${types}`)
}

/** The chain from the leaf upwards, whatever the order in the file. */
function chainOf(
  leaf: X509Certificate,
  all: readonly X509Certificate[],
): { chain: X509Certificate[]; strangers: X509Certificate[] } {
  const chain = [leaf]
  const others = new Set(all.filter((certificate) => certificate.fingerprint256 !== leaf.fingerprint256))
  for (let last = leaf; ; last = chain.at(-1)!) {
    const issuer = [...others].find((other) => last.checkIssued(other) && last.verify(other.publicKey))
    if (issuer === undefined) return { chain, strangers: [...others] }
    chain.push(issuer)
    others.delete(issuer)
  }
}

/** OpenSSL decides: it rejects short keys and unknown key types. */
function tryOut({ name, chain, key }: KeyPair): void {
  try {
    createSecureContext({ cert: chain, key })
  } catch (error) {
    const { message } = error as Error
    const isWeak = message.includes('too small') || message.includes('too weak')
    const why = isWeak ? 'its key or signature is too weak for TLS today' : `TLS cannot use it (${message})`
    throw invalid(name, why, error)
  }
}

function warningsOf(
  { certificateFile: file }: KeyPairSource,
  leaf: X509Certificate,
  chain: readonly X509Certificate[],
  strangers: readonly X509Certificate[],
  nowMs: number,
): string[] {
  const warnings: string[] = []
  const warn = (text: string) => warnings.push(`${file}: ${text}`)
  if (leaf.validToDate.getTime() <= nowMs) warn(`expired on ${leaf.validTo}; clients will refuse it`)
  if (leaf.validFromDate.getTime() > nowMs)
    warn(`is not valid before ${leaf.validFrom}; clients will refuse it`)
  if (leaf.subjectAltName === undefined) warn('names no host (subjectAltName); clients will refuse it')
  if (strangers.length > 0)
    warn(`${strangers.length} certificates in it are not of its chain; they are left out`)
  const isAlone = chain.length === 1 && !leaf.checkIssued(leaf)
  if (isAlone && strangers.length > 0)
    warn("its issuer's certificate is missing; some clients will refuse it")
  return warnings
}

function signatureScheme({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): number | null {
  const kind = asymmetricKeyType === 'ec' ? asymmetricKeyDetails?.namedCurve : asymmetricKeyType
  return SIGNATURE_SCHEMES.get(kind ?? '') ?? null
}

/** If there are no alternative names, the name in the subject counts: some old clients still need it. */
function dnsNamesOf(leaf: X509Certificate): string[] {
  const alternatives = leaf.subjectAltName
  if (alternatives === undefined) {
    const commonName = /^CN=(.+)$/m.exec(leaf.subject ?? '')?.[1]
    return commonName === undefined ? [] : [commonName.toLowerCase()]
  }
  return [...alternatives.matchAll(DNS_ALTERNATIVE)].map(([, name]) => name!.toLowerCase())
}

function invalid(file: string, what: string, cause?: unknown): Fault {
  const separator = /^(the|certificate \d)/.test(what) ? ': ' : ' '
  return new Fault('CERTIFICATE_INVALID', `${file}${separator}${what}`, { cause })
}

/** Enough for a thousand certificates. */
const FILE_BYTES_MAX = 2 ** 20
const PEM_CERTIFICATE = /-----BEGIN (X509 )?CERTIFICATE-----[^-]+-----END \1?CERTIFICATE-----/g
const PEM_KEY = /-----BEGIN ([A-Z]+ )?PRIVATE KEY-----[\s\S]+?-----END \1?PRIVATE KEY-----/
const DNS_ALTERNATIVE = /(?:^|, )DNS:([^,"]+)/g
const SIGNATURE_SCHEMES: ReadonlyMap<string, number> = new Map([
  ['prime256v1', 0x0403],
  ['secp384r1', 0x0503],
  ['secp521r1', 0x0603],
  ['ed25519', 0x0807],
  ['ed448', 0x0808],
])
const READ_FAULTS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'does not exist'],
  ['EACCES', 'cannot be read: permission denied'],
  ['EISDIR', 'is a folder'],
  ['EFBIG', 'is larger than 1 MiB'],
])
