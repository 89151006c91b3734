import { DocumentFault, type DocumentProblem, Place, shown } from '../../shared/problem.ts'
import { type FingerprintSignature, readSignature } from './signature.ts'
import { parseSoftware, type Software } from './software.ts'

/** One line of a long list of signatures. */
export type SignatureLine =
  | { readonly kind: 'software'; readonly software: Software }
  /** `of`: the id of the software. */
  | { readonly kind: 'fingerprint'; readonly of: string; readonly signature: FingerprintSignature }

/**
 * Parses a Software as in a file of signatures, or one of its fingerprints: a signature with the id in
 * `software`. Other types of signatures belong to the Software's own line. Throws a DocumentFault.
 */
export function parseSignatureLine(value: unknown): SignatureLine {
  if (!isFingerprintLine(value)) return { kind: 'software', software: parseSoftware(value) }
  const { software, ...document } = value
  const problems: DocumentProblem[] = []
  const place = Place.of(document, problems)
  const signature = readSignature(place)
  if (typeof software !== 'string') place.refuse(`has the \`software\` ${shown(software)}; expected an id`)
  else if (signature !== null) {
    const { type } = signature
    if (type !== 'user-agent' && type !== 'header' && type !== 'header-order')
      return { kind: 'fingerprint', of: software, signature }
    place.refuse('is not a fingerprint; put it into the `signatures` of its software')
  }
  throw new DocumentFault('SIGNATURES_INVALID', problems)
}

/** Also used to detect the format of a file. */
export function isFingerprintLine(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && 'software' in value
}
