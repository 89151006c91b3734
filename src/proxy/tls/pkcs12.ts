import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import forge from 'node-forge'

export type Pkcs12 =
  | {
      readonly kind: 'opened'
      readonly certificates: readonly X509Certificate[]
      readonly key: KeyObject | null
    }
  | { readonly kind: 'wrong-passphrase' }
  | { readonly kind: 'unreadable'; readonly detail: string }

/**
 * Opens a PKCS#12 file (.p12, .pfx), also with RC2 or DES, which older tools and most keychains write and
 * OpenSSL 3 no longer reads. Keys and certificates are taken as DER, because node-forge itself supports only
 * RSA.
 */
export function openPkcs12(bytes: Uint8Array, passphrase: string): Pkcs12 {
  try {
    const asn1 = forge.asn1.fromDer(forge.util.createBuffer(Buffer.from(bytes).toString('binary')))
    const file = forge.pkcs12.pkcs12FromAsn1(asn1, false, passphrase)
    const keys = [...bags(file, SHROUDED_KEY), ...bags(file, PLAIN_KEY)]
    return {
      kind: 'opened',
      certificates: bags(file, CERTIFICATE).map((bag) => new X509Certificate(certificateDer(bag))),
      key:
        keys.length === 0 ? null : createPrivateKey({ key: keyDer(keys[0]!), format: 'der', type: 'pkcs8' }),
    }
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    return WRONG_PASSPHRASE.test(detail) ? { kind: 'wrong-passphrase' } : { kind: 'unreadable', detail }
  }
}

/** An old DES-encrypted RSA key in PEM. `null` if the passphrase is wrong or the format is another. */
export function openLegacyKey(pem: string, passphrase: string): KeyObject | null {
  try {
    const key = forge.pki.decryptRsaPrivateKey(pem, passphrase)
    return createPrivateKey(forge.pki.privateKeyToPem(key))
  } catch {
    return null
  }
}

function bags(file: forge.pkcs12.Pkcs12Pfx, type: string): forge.pkcs12.Bag[] {
  return file.getBags({ bagType: type })[type] ?? []
}

function certificateDer(bag: forge.pkcs12.Bag): Buffer {
  return der(bag.cert ? forge.pki.certificateToAsn1(bag.cert) : bag.asn1)
}

function keyDer(bag: forge.pkcs12.Bag): Buffer {
  if (!bag.key) return der(bag.asn1)
  return der(forge.pki.wrapRsaPrivateKey(forge.pki.privateKeyToAsn1(bag.key)))
}

function der(asn1: forge.asn1.Asn1): Buffer {
  return Buffer.from(forge.asn1.toDer(asn1).getBytes(), 'binary')
}

const SHROUDED_KEY = forge.pki.oids['pkcs8ShroudedKeyBag']!
const PLAIN_KEY = forge.pki.oids['keyBag']!
const CERTIFICATE = forge.pki.oids['certBag']!
const WRONG_PASSPHRASE = /MAC could not be verified|Invalid password|wrong password|Cannot decrypt/i
