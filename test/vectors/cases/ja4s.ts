import { alpn, type Extension, extension, type ServerHelloPlan, type Transport } from '../hello-builder.ts'
import type { Bug, Rule } from '../rules.ts'

export interface Ja4sCase {
  readonly name: string
  readonly rule: Rule
  readonly bug?: Bug
  readonly transport?: Transport
  readonly hello: ServerHelloPlan
  /** Written by hand from the rule's words. */
  readonly r: string
}

function selected(version: number): Extension {
  return extension(0x002b, Buffer.of(version >> 8, version))
}

function only(...types: readonly number[]): Extension[] {
  return types.map((type) => extension(type))
}

const MANY = Array.from({ length: 120 }, (_, index) => 0x4001 + index)

export const JA4S_CASES: readonly Ja4sCase[] = [
  {
    name: 'version: of supported_versions',
    rule: 'ja4s.version',
    hello: { extensions: [selected(0x0304), extension(0x0033)] },
    r: 't130200_1301_002b,0033',
  },
  {
    name: 'version: of supported_versions, lower than the field',
    rule: 'ja4s.version',
    bug: 'version-source',
    hello: { extensions: [selected(0x0302)] },
    r: 't110100_1301_002b',
  },
  {
    name: 'version: of supported_versions, a draft',
    rule: 'ja4s.version',
    hello: { extensions: [selected(0x7f1c)] },
    r: 't000100_1301_002b',
  },
  {
    name: 'version: of the field',
    rule: 'ja4s.version',
    hello: { legacyVersion: 0x0303, cipher: 0xc02f, extensions: only(0xff01) },
    r: 't120100_c02f_ff01',
  },
  {
    name: 'version: SSL 3.0',
    rule: 'ja4s.version',
    hello: { legacyVersion: 0x0300, cipher: 0x0005, extensions: null },
    r: 'ts30000_0005_',
  },
  {
    name: 'count: at most 99',
    rule: 'ja4s.count',
    bug: 'count-cap',
    hello: { extensions: only(...MANY) },
    r: `t129900_1301_${MANY.map((type) => type.toString(16)).join(',')}`,
  },
  {
    name: 'count: duplicates',
    rule: 'ja4s.count',
    hello: { extensions: only(0x0017, 0x0017) },
    r: 't120200_1301_0017,0017',
  },
  {
    name: 'cipher: four digits',
    rule: 'ja4s.cipher',
    hello: { cipher: 0x0005, extensions: only(0x0017) },
    r: 't120100_0005_0017',
  },
  {
    name: 'cipher: GREASE as it is',
    rule: 'ja4s.cipher',
    hello: { cipher: 0x0a0a, extensions: only(0x0017) },
    r: 't120100_0a0a_0017',
  },
  {
    name: 'order: as sent, SNI and ALPN too',
    rule: 'ja4s.order',
    bug: 'ja4s-dropped',
    hello: { extensions: [...only(0xff01, 0x0000, 0x0023), alpn(Buffer.from('h2')), ...only(0x000b)] },
    r: 't1205h2_1301_ff01,0000,0023,0010,000b',
  },
  {
    name: 'order: an empty block',
    rule: 'ja4s.order',
    bug: 'empty-hash',
    hello: { extensions: [] },
    r: 't120000_1301_',
  },
  {
    name: 'order: no block',
    rule: 'ja4s.order',
    hello: { extensions: null },
    r: 't120000_1301_',
  },
  {
    name: 'ALPN: letters',
    rule: 'ja4s.alpn',
    hello: { extensions: [alpn(Buffer.from('http/1.1'))] },
    r: 't1201h1_1301_0010',
  },
  {
    name: 'ALPN: one letter',
    rule: 'ja4s.alpn',
    bug: 'alpn-single',
    hello: { extensions: [alpn(Buffer.from('q'))] },
    r: 't1201qq_1301_0010',
  },
  {
    name: 'ALPN: other bytes',
    rule: 'ja4s.alpn',
    bug: 'alpn-hex',
    hello: { extensions: [alpn(Buffer.of(0xba, 0xad))] },
    r: 't1201bd_1301_0010',
  },
  {
    name: 'ALPN: broken',
    rule: 'ja4s.alpn',
    hello: { extensions: [extension(0x0010, '0005026832')] },
    r: 't120100_1301_0010',
  },
  {
    name: 'GREASE: left out and not counted',
    rule: 'ja4s.grease',
    hello: { extensions: only(0x2a2a, 0x0017, 0x0a1a) },
    r: 't120200_1301_0017,0a1a',
  },
  {
    name: 'QUIC',
    rule: 'ja4s.version',
    transport: 'quic',
    hello: { extensions: [extension(0x0033), selected(0x0304)] },
    r: 'q130200_1301_0033,002b',
  },
  {
    name: 'DTLS 1.2',
    rule: 'ja4s.dtls',
    transport: 'dtls',
    hello: { legacyVersion: 0xfefd, cipher: 0xc0ff, extensions: only(0xff01, 0x0100) },
    r: 'dd20200_c0ff_ff01,0100',
  },
  {
    name: 'DTLS 1.0',
    rule: 'ja4s.dtls',
    bug: 'dtls-version',
    transport: 'dtls',
    hello: { legacyVersion: 0xfeff, cipher: 0x0035, extensions: only(0xff01) },
    r: 'dd10100_0035_ff01',
  },
  {
    name: 'DTLS 1.3',
    rule: 'ja4s.dtls',
    transport: 'dtls',
    hello: { legacyVersion: 0xfefd, extensions: [selected(0xfefc)] },
    r: 'dd30100_1301_002b',
  },
]
