import { Reader } from './reader.ts'

/** The object identifiers of a certificate in DER order: their content octets as sent, never re-encoded. */
export interface CertificateOids {
  readonly issuer: readonly Uint8Array[]
  readonly subject: readonly Uint8Array[]
  readonly extensions: readonly Uint8Array[]
}

export type CertificateRead =
  | { readonly kind: 'certificate'; readonly oids: CertificateOids }
  | { readonly kind: 'malformed'; readonly fault: CertificateFault }

export type CertificateFault =
  /** A length reaches past the end or is not in DER form. */
  | 'truncated'
  /** An element has another type than RFC 5280 requires. */
  | 'wrong-tag'
  /** Bytes after the certificate. */
  | 'trailing-data'

/** RFC 5280 §4.1. Parses only what a fingerprint needs and skips the rest. */
export function parseCertificate(der: Uint8Array): CertificateRead {
  const cursor = new DerReader(new Reader(der))
  const certificate = cursor.enter(SEQUENCE)
  const tbs = certificate.enter(SEQUENCE)
  if (tbs.peek(der) === VERSION) tbs.skipAny()
  tbs.step(INTEGER) // serialNumber
  tbs.step(SEQUENCE) // signature
  const issuer = nameOids(tbs.enter(SEQUENCE))
  tbs.step(SEQUENCE) // validity
  const subject = nameOids(tbs.enter(SEQUENCE))
  tbs.step(SEQUENCE) // subjectPublicKeyInfo
  const extensions = extensionOids(tbs, der)
  certificate.step(SEQUENCE) // signatureAlgorithm
  certificate.step(BIT_STRING) // signatureValue

  for (const part of [issuer, subject, extensions]) if (part.fault !== null) return malformed(part.fault)
  const fault = cursor.fault ?? certificate.fault ?? tbs.fault
  if (fault !== null) return malformed(fault)
  if (cursor.left > 0) return malformed('trailing-data')
  return {
    kind: 'certificate',
    oids: { issuer: issuer.oids, subject: subject.oids, extensions: extensions.oids },
  }
}

interface Oids {
  readonly oids: Uint8Array[]
  readonly fault: CertificateFault | null
}

/** RDNSequence: a multi-valued RDN is flattened in the order of its SET. */
function nameOids(name: DerReader): Oids {
  const oids: Uint8Array[] = []
  let fault = name.fault
  while (name.left > 0 && fault === null) {
    const rdn = name.enter(SET)
    while (rdn.left > 0 && rdn.fault === null) {
      const attribute = rdn.enter(SEQUENCE)
      oids.push(attribute.content(OBJECT_IDENTIFIER))
      fault ??= attribute.fault
    }
    fault ??= name.fault ?? rdn.fault
  }
  return { oids, fault }
}

/**
 * `[3] EXPLICIT SEQUENCE OF Extension`. It skips the unique identifiers before it, which are not used in
 * practice.
 */
function extensionOids(tbs: DerReader, der: Uint8Array): Oids {
  const oids: Uint8Array[] = []
  let fault: CertificateFault | null = null
  while (tbs.left > 0 && tbs.fault === null && fault === null) {
    if (tbs.peek(der) !== EXTENSIONS) {
      tbs.skipAny()
      continue
    }
    const explicit = tbs.enter(EXTENSIONS)
    const list = explicit.enter(SEQUENCE)
    fault = explicit.fault ?? list.fault
    while (list.left > 0 && fault === null) {
      const extension = list.enter(SEQUENCE)
      oids.push(extension.content(OBJECT_IDENTIFIER))
      fault = list.fault ?? extension.fault
    }
  }
  return { oids, fault }
}

/** Steps over DER elements. At the first malformed element it sets `fault`, and `left` is 0 from then on. */
class DerReader {
  fault: CertificateFault | null = null
  readonly #r: Reader

  constructor(r: Reader) {
    this.#r = r
  }

  get left(): number {
    return this.fault === null ? this.#r.left : 0
  }

  peek(der: Uint8Array): number | undefined {
    return this.left > 0 ? der[this.#r.at] : undefined
  }

  enter(tag: number): DerReader {
    const inner = new DerReader(this.#element(tag))
    inner.fault = this.fault
    return inner
  }

  content(tag: number): Uint8Array {
    const body = this.#element(tag)
    return body.take(body.left)
  }

  step(tag: number): void {
    this.#element(tag)
  }

  skipAny(): void {
    this.#element(null)
  }

  #element(tag: number | null): Reader {
    const found = this.#r.u8()
    const length = this.#length()
    const body = this.#r.sub(length)
    if (this.fault === null && !this.#r.ok) this.fault = 'truncated'
    if (this.fault === null && tag !== null && found !== tag) this.fault = 'wrong-tag'
    return body
  }

  /** X.690 §8.1.3. Four length octets at most: no certificate is longer. */
  #length(): number {
    const first = this.#r.u8()
    if (first < 0x80) return first
    const octets = first & 0x7f
    if (octets === 0 || octets > 4) {
      this.fault ??= 'truncated'
      return 0
    }
    let length = 0
    for (let i = 0; i < octets; i++) length = length * 256 + this.#r.u8()
    return length
  }
}

function malformed(fault: CertificateFault): CertificateRead {
  return { kind: 'malformed', fault }
}

const INTEGER = 0x02
const BIT_STRING = 0x03
const OBJECT_IDENTIFIER = 0x06
const SEQUENCE = 0x30
const SET = 0x31
const VERSION = 0xa0
const EXTENSIONS = 0xa3
