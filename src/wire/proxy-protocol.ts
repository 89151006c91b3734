import { ipFamily, normalAddress } from './ip-address.ts'

/** What stands before the first byte of a connection that a load balancer passes on (HAProxy's proxy-protocol.txt). */
export type ProxyRead =
  | { readonly kind: 'need-more' }
  /** These bytes begin something else. */
  | { readonly kind: 'none' }
  | { readonly kind: 'malformed'; readonly fault: ProxyFault }
  | {
      readonly kind: 'header'
      /** How many bytes it takes. */
      readonly length: number
      /** The client; `null` where the balancer speaks for itself (LOCAL, UNKNOWN) or the family is not IP. */
      readonly source: ProxySource | null
    }

export interface ProxySource {
  readonly address: string
  readonly port: number
}

export type ProxyFault =
  /** Version 1: longer than a line may be, or not ended by CRLF. */
  | 'line'
  /** Version 1: not the words that the specification has. */
  | 'words'
  /** An address or port that is none, or not of the family announced. */
  | 'address'
  /** Version 2: another version, command or family. */
  | 'version'
  /** Version 2: too short for the addresses announced, or longer than `PROXY_BYTES_MAX`. */
  | 'length'

/** `bytes` is all that has arrived so far. Said at the first byte that shows it, also when it is cut anywhere. */
export function parseProxyHeader(bytes: Uint8Array): ProxyRead {
  if (bytes.length === 0) return NEED_MORE
  if (begins(bytes, SIGNATURE_2)) return bytes.length < HEADER_2_BYTES ? NEED_MORE : parseVersion2(bytes)
  if (begins(bytes, SIGNATURE_1)) return bytes.length < SIGNATURE_1.length ? NEED_MORE : parseVersion1(bytes)
  return NONE
}

/** Whether the bytes are this signature or, as far as they go, may become it. */
function begins(bytes: Uint8Array, signature: Uint8Array): boolean {
  const length = Math.min(bytes.length, signature.length)
  for (let i = 0; i < length; i++) if (bytes[i] !== signature[i]) return false
  return true
}

/** `PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n`: single blanks, and a line of 107 bytes at most. */
function parseVersion1(bytes: Uint8Array): ProxyRead {
  const end = bytes.indexOf(LINE_FEED)
  if (end === -1) return bytes.length < LINE_BYTES_MAX ? NEED_MORE : malformed('line')
  if (end >= LINE_BYTES_MAX || bytes[end - 1] !== CARRIAGE_RETURN) return malformed('line')
  const line = Buffer.from(bytes.buffer, bytes.byteOffset, end - 1).toString('latin1')
  const length = end + 1
  const [, family, source, destination, sourcePort, destinationPort, ...more] = line.split(' ')
  if (family === 'UNKNOWN') return { kind: 'header', length, source: null } // whatever follows is to be ignored
  if ((family !== 'TCP4' && family !== 'TCP6') || destinationPort === undefined || more.length > 0)
    return malformed('words')
  const version = family === 'TCP4' ? 4 : 6
  if (ipFamily(source!) !== version || ipFamily(destination!) !== version) return malformed('address')
  if (!isPort(sourcePort!) || !isPort(destinationPort)) return malformed('address')
  return { kind: 'header', length, source: { address: normalAddress(source!)!, port: Number(sourcePort) } }
}

function isPort(text: string): boolean {
  return /^(?:0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 0xffff
}

/** Signature, version and command, family and transport, length; then addresses, and TLVs that nobody here asks. */
function parseVersion2(bytes: Uint8Array): ProxyRead {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const version = bytes[12]! >> 4
  const command = bytes[12]! & 15
  const family = bytes[13]! >> 4
  const transport = bytes[13]! & 15
  if (version !== 2 || command > COMMAND_PROXY || family > FAMILY_UNIX || transport > TRANSPORT_DATAGRAM)
    return malformed('version')
  const addressBytes = ADDRESS_BYTES[family]!
  const length = HEADER_2_BYTES + view.getUint16(14)
  const isTold = command === COMMAND_PROXY && family !== FAMILY_UNSPECIFIED
  if (length > PROXY_BYTES_MAX || (isTold && length < HEADER_2_BYTES + addressBytes))
    return malformed('length')
  if (bytes.length < length) return NEED_MORE
  if (!isTold || family === FAMILY_UNIX) return { kind: 'header', length, source: null }
  const octets = bytes.subarray(HEADER_2_BYTES, HEADER_2_BYTES + (addressBytes - 4) / 2)
  const port = view.getUint16(HEADER_2_BYTES + addressBytes - 4)
  return { kind: 'header', length, source: { address: addressText(octets), port } }
}

function addressText(octets: Uint8Array): string {
  if (octets.length === 4) return octets.join('.')
  const hex = Buffer.from(octets).toString('hex')
  return normalAddress(hex.replace(/(....)(?!$)/g, '$1:'))!
}

function malformed(fault: ProxyFault): ProxyRead {
  return { kind: 'malformed', fault }
}

/** A version 2 header may announce 64 KiB of TLVs; balancers send some hundred bytes, with a client certificate some thousand. */
const PROXY_BYTES_MAX = 8192
const LINE_BYTES_MAX = 107
const HEADER_2_BYTES = 16
const COMMAND_PROXY = 1
const FAMILY_UNSPECIFIED = 0
const FAMILY_UNIX = 3
const TRANSPORT_DATAGRAM = 2
/** By family: both addresses and both ports. */
const ADDRESS_BYTES: readonly number[] = [0, 12, 36, 216]
const SIGNATURE_1 = Buffer.from('PROXY ', 'latin1')
const SIGNATURE_2 = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const NEED_MORE: ProxyRead = { kind: 'need-more' }
const NONE: ProxyRead = { kind: 'none' }
