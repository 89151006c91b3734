import { ipFamily, normalAddress } from './ip-address.ts'
import { mayBegin } from './opening-bytes.ts'

/**
 * The PROXY protocol header that a load balancer sends before the first byte of a connection (HAProxy's
 * proxy-protocol.txt).
 */
export type ProxyRead =
  | { readonly kind: 'need-more' }
  /** The bytes are not a PROXY header. */
  | { readonly kind: 'none' }
  | { readonly kind: 'malformed'; readonly fault: ProxyFault }
  | {
      readonly kind: 'header'
      /** The length of the header in bytes. */
      readonly length: number
      /**
       * The client. `null` if the connection is the balancer's own (LOCAL, UNKNOWN) or the family is not IP.
       */
      readonly source: ProxySource | null
    }

export interface ProxySource {
  readonly address: string
  readonly port: number
}

export type ProxyFault =
  /** Version 1: the line is too long or does not end with CRLF. */
  | 'line'
  /** Version 1: the words do not match the specification. */
  | 'words'
  /** An address or port is invalid or not of the announced family. */
  | 'address'
  /** Version 2: unknown version, command or family. */
  | 'version'
  /** Version 2: too short for the addresses announced, or longer than `PROXY_BYTES_MAX`. */
  | 'length'

/**
 * `bytes` is everything that has arrived so far, cut anywhere. A fault is reported at the first byte that
 * shows it.
 */
export function parseProxyHeader(bytes: Uint8Array): ProxyRead {
  if (bytes.length === 0) return NEED_MORE
  if (mayBegin(bytes, SIGNATURE_2)) return bytes.length < HEADER_2_BYTES ? NEED_MORE : parseVersion2(bytes)
  if (mayBegin(bytes, SIGNATURE_1))
    return bytes.length < SIGNATURE_1.length ? NEED_MORE : parseVersion1(bytes)
  return NONE
}

/** `PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n`: single blanks, at most 107 bytes. */
function parseVersion1(bytes: Uint8Array): ProxyRead {
  const end = bytes.indexOf(LINE_FEED)
  if (end === -1) return bytes.length < LINE_BYTES_MAX ? NEED_MORE : malformed('line')
  if (end >= LINE_BYTES_MAX || bytes[end - 1] !== CARRIAGE_RETURN) return malformed('line')
  const line = Buffer.from(bytes.buffer, bytes.byteOffset, end - 1).toString('latin1')
  const length = end + 1
  const [, family, source, destination, sourcePort, destinationPort, ...more] = line.split(' ')
  if (family === 'UNKNOWN') return { kind: 'header', length, source: null } // the rest of the line is ignored
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

/** Signature, version and command, family and transport, length, addresses, TLVs. The TLVs are ignored. */
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

/**
 * A version 2 header may announce 64 KiB of TLVs. Balancers send some hundred bytes, or some thousand with a
 * client certificate.
 */
const PROXY_BYTES_MAX = 8192
const LINE_BYTES_MAX = 107
const HEADER_2_BYTES = 16
const COMMAND_PROXY = 1
const FAMILY_UNSPECIFIED = 0
const FAMILY_UNIX = 3
const TRANSPORT_DATAGRAM = 2
/** Bytes of both addresses and both ports, by family. */
const ADDRESS_BYTES: readonly number[] = [0, 12, 36, 216]
const SIGNATURE_1 = Buffer.from('PROXY ', 'latin1')
const SIGNATURE_2 = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const NEED_MORE: ProxyRead = { kind: 'need-more' }
const NONE: ProxyRead = { kind: 'none' }
