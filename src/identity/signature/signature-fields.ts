import { type InnerList, isInnerList, type Item } from 'structured-headers'
import { fieldValue } from './signature-base.ts'
import { readDistinctDictionary } from './structured-text.ts'

/** A signature from `Signature-Input` and `Signature` (RFC 9421 §4), not yet verified. */
export interface LabelledSignature {
  readonly label: string
  readonly input: InnerList
  readonly bytes: Uint8Array
}

export type ReadSignatureFields =
  | { readonly kind: 'signatures'; readonly signatures: readonly LabelledSignature[] }
  | { readonly kind: 'unsigned' | 'malformed' | 'too-large' }

/** Strict: text that two parsers could read differently is malformed. */
export function readSignatureFields(
  rawHeaders: readonly string[],
  lengthMax = FIELD_LENGTH_MAX,
): ReadSignatureFields {
  const inputText = fieldValue(rawHeaders, 'signature-input')
  const text = fieldValue(rawHeaders, 'signature')
  if (inputText === null && text === null) return { kind: 'unsigned' }
  if (inputText === null || text === null) return { kind: 'malformed' }
  if (inputText.length > lengthMax || text.length > lengthMax) return { kind: 'too-large' }
  try {
    const inputs = readDistinctDictionary(inputText)
    const values = readDistinctDictionary(text)
    if (inputs.size > SIGNATURES_MAX || values.size > SIGNATURES_MAX) return { kind: 'too-large' }
    if (inputs.size !== values.size) return { kind: 'malformed' }
    const signatures: LabelledSignature[] = []
    for (const [label, input] of inputs) {
      const signature = labelled(label, input, values.get(label))
      if (signature === null) return { kind: 'malformed' }
      if (signature.input[0].length > COMPONENTS_MAX) return { kind: 'too-large' }
      signatures.push(signature)
    }
    return { kind: 'signatures', signatures }
  } catch {
    return { kind: 'malformed' }
  }
}

function labelled(
  label: string,
  input: Item | InnerList,
  value: Item | InnerList | undefined,
): LabelledSignature | null {
  if (!isInnerList(input) || value === undefined || isInnerList(value)) return null
  const [bytes] = value
  return bytes instanceof ArrayBuffer ? { label, input, bytes: new Uint8Array(bytes) } : null
}

/** Limit for each of the two fields. */
export const FIELD_LENGTH_MAX = 8_192
/** For one agent and some intermediaries. */
const SIGNATURES_MAX = 8
const COMPONENTS_MAX = 32
