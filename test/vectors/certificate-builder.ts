/** What a certificate is made of; object identifiers are their content octets in hex. */
export interface CertificatePlan {
  readonly version?: 1 | 3
  /** An entry is an RDN, and has an OID for each of its attributes. */
  readonly issuer?: readonly (readonly string[])[]
  readonly subject?: readonly (readonly string[])[]
  /** `null`: not even an empty list. */
  readonly extensions?: readonly string[] | null
  /** The unique ids of X.509 v2, which stand before the extensions. */
  readonly uniqueIds?: boolean
}

/** RFC 5280 §4.1, in DER. Nothing in it is signed, and nothing is valid. */
export function certificate(plan: CertificatePlan): Buffer {
  const { version = 3, issuer = [], subject = [], extensions = null, uniqueIds = false } = plan
  const tbs = der(
    0x30,
    ...(version === 3 ? [der(0xa0, der(0x02, Buffer.of(2)))] : []),
    der(0x02, Buffer.of(1)), // serialNumber
    der(0x30, oid('2a8648ce3d040302')), // signature
    name(issuer),
    der(0x30, der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from('300101000000Z'))),
    name(subject),
    der(0x30, der(0x30, oid('2b6570')), der(0x03, Buffer.alloc(33))), // subjectPublicKeyInfo
    ...(uniqueIds ? [der(0x81, Buffer.alloc(7)), der(0x82, Buffer.alloc(7))] : []),
    ...(extensions === null ? [] : [der(0xa3, der(0x30, ...extensions.map(extension)))]),
  )
  return der(0x30, tbs, der(0x30, oid('2a8648ce3d040302')), der(0x03, Buffer.alloc(65)))
}

function name(rdns: readonly (readonly string[])[]): Buffer {
  return der(
    0x30,
    ...rdns.map((types) =>
      der(0x31, ...types.map((type) => der(0x30, oid(type), der(0x0c, Buffer.from('x'))))),
    ),
  )
}

/** The second one of each certificate is critical, which puts a BOOLEAN between its OID and its value. */
function extension(type: string, index: number): Buffer {
  return der(
    0x30,
    oid(type),
    ...(index === 1 ? [der(0x01, Buffer.of(0xff))] : []),
    der(0x04, Buffer.of(5, 0)),
  )
}

function oid(octets: string): Buffer {
  return der(0x06, Buffer.from(octets, 'hex'))
}

/** An element; the length in as few octets as it takes. */
function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const octets =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.of(tag, ...octets), content])
}
