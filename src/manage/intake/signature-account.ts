import { SIGNATURE_FAULT_TEXTS } from '../../identity/verify/signature-faults.ts'
import type { Sighting } from '../../plane/sighting.ts'

/**
 * The result of checking a request's signature, in words, from a Sighting; `null`: the request is unsigned.
 */
export function signatureText(
  sighting: Pick<Sighting, 'signer' | 'key' | 'allegedSigner' | 'signatureFault' | 'evidence'>,
): string | null {
  const { signer, key, allegedSigner, signatureFault, evidence } = sighting
  if (signer !== null) return `signed by ${signer} with the key ${key}`
  if (signatureFault === null) return null
  const who = allegedSigner === null ? 'it is signed' : `it claims to be signed by ${allegedSigner}`
  const what = evidence.includes('signature-failed')
    ? 'the signature is invalid'
    : 'the signature could not be checked'
  return `${who}, but ${what}: ${TEXTS.get(signatureFault) ?? signatureFault}`
}

/** A proxy of another version may send a fault that is missing here. */
const TEXTS: ReadonlyMap<string, string> = new Map(Object.entries(SIGNATURE_FAULT_TEXTS))
