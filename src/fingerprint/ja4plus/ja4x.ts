import type { Brand } from '../../shared/brand.ts'
import type { CertificateOids } from '../../wire/x509.ts'
import { hash12 } from '../text.ts'

export type Ja4x = Brand<string, 'Ja4x'>

/**
 * The JA4X of one certificate: the types of the fields in its issuer, subject and extensions, not their
 * values.
 */
export function ja4x(oids: CertificateOids): Ja4x {
  return `${hash12(hexList(oids.issuer))}_${hash12(hexList(oids.subject))}_${hash12(hexList(oids.extensions))}` as Ja4x
}

/** JA4X without hashing. */
export function ja4xRaw(oids: CertificateOids): string {
  return `${hexList(oids.issuer)}_${hexList(oids.subject)}_${hexList(oids.extensions)}`
}

function hexList(oids: readonly Uint8Array[]): string {
  return oids.map((oid) => Buffer.from(oid.buffer, oid.byteOffset, oid.length).toString('hex')).join(',')
}
