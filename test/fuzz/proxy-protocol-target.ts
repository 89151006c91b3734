import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { normalAddress } from '../../src/wire/ip-address.ts'
import { parseProxyHeader, type ProxyRead } from '../../src/wire/proxy-protocol.ts'
import { headerV1, headerV2 } from '../proxy/proxy-header.ts'

/**
 * A PROXY header is known at one byte and not before; what comes behind that byte changes nothing. Who it names is an
 * address in its one form, and written again, in either version, it is the same.
 */
export function proxyProtocol(bytes: Buffer): void {
  let known: ProxyRead | null = null
  for (const end of ends(bytes.length)) {
    const read = parseProxyHeader(bytes.subarray(0, end))
    if (known === null) {
      if (read.kind !== 'need-more') known = read
      if (read.kind === 'header') assert.ok(read.length <= end, 'it is read before it is there')
    } else assert.deepEqual(read, known)
  }
  // Elsewhere in memory, with other bytes around it.
  const around = Buffer.concat([Buffer.from('PROXY '), bytes, Buffer.from('\r\n')])
  assert.deepEqual(parseProxyHeader(around.subarray(6, -2)), parseProxyHeader(bytes))
  if (known?.kind !== 'header') return
  const before = parseProxyHeader(bytes.subarray(0, known.length - 1))
  assert.equal(before.kind, 'need-more', 'its last byte is not needed')
  if (known.source !== null) writtenAgain(known.source.address, known.source.port)
}

/** All of a short one; of a long one its beginning, and some more. */
function ends(length: number): number[] {
  const first = Array.from({ length: Math.min(length, ALL_BYTES_MAX) + 1 }, (_, end) => end)
  return length <= ALL_BYTES_MAX
    ? first
    : [...first, length >> 1, length].filter((end, i, all) => i === 0 || end >= all[i - 1]!)
}

function writtenAgain(address: string, port: number): void {
  const version = isIP(address)
  assert.notEqual(version, 0, address)
  assert.equal(normalAddress(address), address)
  assert.ok(port >= 0 && port <= 0xffff)
  const source = { address, port }
  for (const header of [
    headerV1(`TCP${version} ${address} ${address} ${port} 443`),
    headerV2({ source: address, port }),
  ])
    assert.deepEqual(parseProxyHeader(header), { kind: 'header', length: header.length, source })
}

export function proxyProtocolSeeds(): Buffer[] {
  return [
    headerV1('TCP4 192.0.2.1 192.0.2.2 56324 443'),
    headerV1('TCP6 2001:db8::1 2001:db8::2 56324 443'),
    headerV1('TCP6 ::ffff:192.0.2.1 ::1 0 65535'),
    headerV1('UNKNOWN'),
    headerV1('UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535'),
    headerV2({ source: '192.0.2.1', port: 56_324 }),
    headerV2({ source: '2001:db8::1', port: 56_324, more: Buffer.alloc(40, 4) }),
    headerV2({ command: 0 }),
    headerV2({ family: 3, more: Buffer.alloc(216) }),
    headerV2({ family: 0, transport: 0, more: Buffer.alloc(9) }),
    Buffer.concat([headerV1('TCP4 1.2.3.4 1.2.3.4 1 2'), headerV2({ source: '::1', port: 1 })]),
    Buffer.from('160301', 'hex'),
    Buffer.from('GET / HTTP/1.1\r\n'),
  ]
}

const ALL_BYTES_MAX = 300
