import { Reader } from './reader.ts'

export type CertificateList =
  | { readonly kind: 'certificates'; readonly certificates: readonly Uint8Array[] }
  | { readonly kind: 'malformed'; readonly fault: 'truncated' | 'trailing-data' }

/** The body of a Certificate message up to TLS 1.2 (RFC 5246 §7.4.2): the chain in wire order, in DER. */
export function parseCertificates(body: Uint8Array): CertificateList {
  const r = new Reader(body)
  const list = r.sub(r.u24())
  const certificates: Uint8Array[] = []
  while (list.left > 0) certificates.push(list.take(list.u24()))
  return result(certificates, list.ok, r.left)
}

/**
 * The body of a Certificate message of TLS 1.3 (RFC 8446 §4.4.2): a context first, and extensions after each
 * entry.
 */
export function parseCertificates13(body: Uint8Array): CertificateList {
  const r = new Reader(body)
  r.skip(r.u8()) // certificate_request_context
  const list = r.sub(r.u24())
  const certificates: Uint8Array[] = []
  while (list.left > 0) {
    certificates.push(list.take(list.u24()))
    list.skip(list.u16())
  }
  return result(certificates, list.ok, r.left)
}

function result(certificates: Uint8Array[], ok: boolean, left: number): CertificateList {
  if (!ok) return { kind: 'malformed', fault: 'truncated' }
  if (left > 0) return { kind: 'malformed', fault: 'trailing-data' }
  return { kind: 'certificates', certificates: certificates.filter((der) => der.length > 0) }
}

export const CERTIFICATE = 11
