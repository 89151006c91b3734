import { isIP } from 'node:net'

/** PROXY headers as balancers write them, and as they should not. */
export function headerV1(words: string): Buffer {
  return Buffer.from(`PROXY ${words}\r\n`, 'latin1')
}

export interface HeaderV2 {
  readonly source?: string
  readonly port?: number
  readonly version?: number
  readonly command?: number
  readonly family?: number
  readonly transport?: number
  /** Behind the addresses, or in their place. */
  readonly more?: Uint8Array
}

export function headerV2(plan: HeaderV2): Buffer {
  const { source, port = 0, version = 2, command = 1, transport = 1, more = Buffer.alloc(0) } = plan
  const { family = source === undefined ? 1 : isIP(source) === 4 ? 1 : 2 } = plan
  const octets = source === undefined ? Buffer.alloc(0) : addressOctets(source)
  const ports = source === undefined ? Buffer.alloc(0) : Buffer.of(port >> 8, port, 1, 187)
  const body = Buffer.concat([octets, octets, ports, more])
  const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
  const head = Buffer.of((version << 4) | command, (family << 4) | transport, body.length >> 8, body.length)
  return Buffer.concat([signature, head, body])
}

function addressOctets(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail = ''] = address.split('::')
  const words = (part: string) =>
    part === '' ? [] : part.split(':').map((word) => Number.parseInt(word, 16))
  const [front, back] = [words(head), words(tail)]
  const all = [...front, ...new Array<number>(8 - front.length - back.length).fill(0), ...back]
  return Buffer.from(all.flatMap((word) => [word >> 8, word & 255]))
}
