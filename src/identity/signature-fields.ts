import { type InnerList, isInnerList, type Item, parseDictionary } from 'structured-headers'
import { fieldValue } from './signature-base.ts'

/** A signature as it stands in `Signature-Input` and `Signature` (RFC 9421 §4), about which nothing is known yet. */
export interface LabelledSignature {
  readonly label: string
  readonly input: InnerList
  readonly bytes: Uint8Array
}

export type ReadSignatureFields =
  | { readonly kind: 'signatures'; readonly signatures: readonly LabelledSignature[] }
  | { readonly kind: 'unsigned' | 'malformed' | 'too-large' }

/** Strictly: what two programs could read as two things is malformed. */
export function readSignatureFields(rawHeaders: readonly string[]): ReadSignatureFields {
  const inputText = fieldValue(rawHeaders, 'signature-input')
  const text = fieldValue(rawHeaders, 'signature')
  if (inputText === null && text === null) return { kind: 'unsigned' }
  if (inputText === null || text === null) return { kind: 'malformed' }
  if (inputText.length > FIELD_LENGTH_MAX || text.length > FIELD_LENGTH_MAX) return { kind: 'too-large' }
  try {
    const inputs = parseDictionary(inputText)
    const values = parseDictionary(text)
    if (inputs.size > SIGNATURES_MAX || values.size > SIGNATURES_MAX) return { kind: 'too-large' }
    const signatures = [...inputs].map(([label, input]) => labelled(label, input, values.get(label)))
    if (signatures.length !== values.size || !signatures.every((each) => each !== null))
      return { kind: 'malformed' }
    if (signatures.some(({ input }) => input[0].length > COMPONENTS_MAX)) return { kind: 'too-large' }
    const isWhole = hasAllOf(inputText, signatures) && separators(text).commas === values.size - 1
    return isWhole ? { kind: 'signatures', signatures } : { kind: 'malformed' }
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

/**
 * Whether as many labels and parameters came out as went in. Of two with the same name the last one counts, without a
 * word, and the first may be what somebody else has read.
 */
function hasAllOf(text: string, signatures: readonly LabelledSignature[]): boolean {
  const { commas, semicolons } = separators(text)
  const parameters = signatures.flatMap(({ input: [items, own] }) => [
    own.size,
    ...items.map(([, each]) => each.size),
  ])
  return commas === signatures.length - 1 && semicolons === parameters.reduce((sum, size) => sum + size, 0)
}

/** Those outside of strings; nothing else of a structured field can hold one. */
function separators(text: string): { readonly commas: number; readonly semicolons: number } {
  const counts = { commas: 0, semicolons: 0 }
  let isString = false
  for (let i = 0; i < text.length; i++) {
    const character = text[i]
    if (isString && character === '\\') i++
    else if (character === '"') isString = !isString
    else if (!isString && character === ',') counts.commas++
    else if (!isString && character === ';') counts.semicolons++
  }
  return counts
}

const FIELD_LENGTH_MAX = 8_192
/** Of an agent, and of a few that it came by. */
const SIGNATURES_MAX = 8
const COMPONENTS_MAX = 32
