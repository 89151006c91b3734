import { FRAME_HEADER_BYTES } from '../../../wire/h2/frame.ts'
import type { HpackEncoder } from '../../../wire/h2/hpack-encoder.ts'
import { ownText } from '../../../wire/own-text.ts'
import { isFieldValue, isToken } from '../../connection/field-syntax.ts'
import { httpDate } from '../answer-head.ts'

/**
 * Encodes the head of an answer, with names in lower case, a date and without fields of the connection. Returns
 * `false`, and encodes nothing, if a field is invalid: what enters the encoder's table must reach the client.
 */
export function encodeHead(
  encoder: HpackEncoder,
  status: number,
  headers: readonly string[],
  neverIndexed: readonly string[],
): boolean {
  if (!areFields(headers)) return false
  encoder.begin(FRAME_HEADER_BYTES)
  encoder.status(status)
  let needsDate = status >= 200
  for (let i = 0; i < headers.length; i += 2) {
    const name = sentName(headers[i]!)!
    if (name === 'date') needsDate = false
    if (name === '' || (status === 204 && name === 'content-length')) continue // RFC 9110 §8.6
    if (neverIndexed.length > 0 && neverIndexed.includes(name)) encoder.neverIndexed(name, headers[i + 1]!)
    else encoder.field(name, headers[i + 1]!)
  }
  if (needsDate) encoder.field('date', httpDate()) // §6.6.1
  return true
}

/** The same for trailers. */
export function encodeTrailers(encoder: HpackEncoder, trailers: readonly string[]): boolean {
  if (!areFields(trailers)) return false
  encoder.begin(FRAME_HEADER_BYTES)
  for (let i = 0; i < trailers.length; i += 2) {
    const name = sentName(trailers[i]!)!
    if (name !== '') encoder.field(name, trailers[i + 1]!)
  }
  return true
}

function areFields(headers: readonly string[]): boolean {
  for (let i = 0; i < headers.length; i += 2)
    if (sentName(headers[i]!) === null || !isFieldValue(headers[i + 1]!)) return false
  return true
}

/** The name in lower case. An empty text if the field belongs to the connection, `null` if it is invalid. */
function sentName(name: string): string | null {
  const known = NAMES.get(name)
  if (known !== undefined) return known
  const lower = name.toLowerCase()
  const sent = !isToken(name) ? null : isConnectionField(lower) ? '' : lower
  if (NAMES.size < NAMES_MAX && name.length <= NAME_LENGTH_MAX) NAMES.set(ownText(name), sent)
  return sent
}

/** RFC 9113 §8.2.2. `name` is in lower case. */
export function isConnectionField(name: string): boolean {
  switch (name.length) {
    case 7:
      return name === 'upgrade'
    case 10:
      return name === 'connection' || name === 'keep-alive'
    case 14:
      return name === 'http2-settings'
    case 16:
      return name === 'proxy-connection'
    case 17:
      return name === 'transfer-encoding'
    default:
      return false
  }
}

/** The names that apps have sent: they repeat. */
const NAMES = new Map<string, string | null>()
const NAMES_MAX = 1_000
const NAME_LENGTH_MAX = 64
