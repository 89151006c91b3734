import {
  alpn,
  type Extension,
  extension,
  type HelloPlan,
  serverName,
  signatureAlgorithms,
  supportedVersions,
  type Transport,
} from '../hello-builder.ts'
import type { Bug, Rule } from '../rules.ts'

/** `r` and `ro` are written by hand from the rule's words, and everything expected follows from them. */
export interface Ja4Case {
  readonly name: string
  readonly rule: Rule
  readonly bug?: Bug
  readonly transport?: Transport
  readonly hello: HelloPlan
  readonly r: string
  readonly ro: string
}

/** Two ciphers, the extensions given, and behind them two that speak for themselves. */
function plain(...extensions: readonly Extension[]): HelloPlan {
  return {
    ciphers: [0xc02f, 0x1301],
    extensions: [...extensions, extension(0x0017), signatureAlgorithms(0x0804, 0x0403)],
  }
}

/** Ciphers and extensions for which nothing but their number matters. */
function bare(ciphers: readonly number[], ...extensions: readonly Extension[]): HelloPlan {
  return { ciphers, extensions }
}

function only(...types: readonly number[]): Extension[] {
  return types.map((type) => extension(type))
}

function numbers(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => from + index)
}

function hex(values: readonly number[]): string {
  return values.map((value) => value.toString(16).padStart(4, '0')).join(',')
}

const GREASE = [
  ...[0x0a0a, 0x1a1a, 0x2a2a, 0x3a3a, 0x4a4a, 0x5a5a, 0x6a6a, 0x7a7a],
  ...[0x8a8a, 0x9a9a, 0xaaaa, 0xbaba, 0xcaca, 0xdada, 0xeaea, 0xfafa],
]
/** Equal bytes or low nibbles of 0xa, but not both. */
const NOT_GREASE = [0x0a1a, 0x1a0a, 0x0a0b, 0x0b0a, 0xabab, 0xeded, 0xeeee, 0xefef, 0x00aa, 0xaa00]

const VERSIONS: readonly {
  readonly name: string
  readonly rule: Rule
  readonly bug?: Bug
  readonly transport?: Transport
  readonly field: number
  /** Of supported_versions; `null` without it. */
  readonly supported: readonly number[] | null
  readonly mark: string
}[] = [
  { name: 'field 0304', rule: 'ja4.2.table', field: 0x0304, supported: null, mark: '13' },
  { name: 'field 0303', rule: 'ja4.2.legacy', field: 0x0303, supported: null, mark: '12' },
  { name: 'field 0302', rule: 'ja4.2.legacy', field: 0x0302, supported: null, mark: '11' },
  { name: 'field 0301', rule: 'ja4.2.legacy', field: 0x0301, supported: null, mark: '10' },
  { name: 'field 0300', rule: 'ja4.2.table', field: 0x0300, supported: null, mark: 's3' },
  { name: 'field 0002', rule: 'ja4.2.table', field: 0x0002, supported: null, mark: 's2' },
  {
    name: 'field 0200',
    rule: 'ja4.2.table',
    bug: 'ssl2-version',
    field: 0x0200,
    supported: null,
    mark: '00',
  },
  { name: 'field 0305', rule: 'ja4.2.table', field: 0x0305, supported: null, mark: '00' },
  { name: 'field 7f1c', rule: 'ja4.2.table', field: 0x7f1c, supported: null, mark: '00' },
  { name: 'DTLS 1.0', rule: 'ja4.2.table', transport: 'dtls', field: 0xfeff, supported: null, mark: 'd1' },
  { name: 'DTLS 1.2', rule: 'ja4.2.table', transport: 'dtls', field: 0xfefd, supported: null, mark: 'd2' },
  {
    name: 'DTLS 1.3',
    rule: 'ja4.2.table',
    transport: 'dtls',
    field: 0xfefd,
    supported: [0xfefc],
    mark: 'd3',
  },
  {
    name: 'DTLS before the RFC',
    rule: 'ja4.2.table',
    bug: 'dtls-version',
    transport: 'dtls',
    field: 0x0100,
    supported: null,
    mark: '00',
  },
  {
    name: 'DTLS 1.3, 1.2 and 1.0',
    rule: 'ja4.2.dtls',
    transport: 'dtls',
    field: 0xfefd,
    supported: [0xfeff, 0xfefc, 0xfefd],
    mark: 'd3',
  },
  {
    name: 'DTLS 1.2 and 1.0, with GREASE',
    rule: 'ja4.2.dtls',
    transport: 'dtls',
    field: 0xfefd,
    supported: [0xfafa, 0xfefd, 0xfeff],
    mark: 'd2',
  },
  {
    name: 'TLS 1.3 and 1.2',
    rule: 'ja4.2.supported',
    field: 0x0303,
    supported: [0x0304, 0x0303],
    mark: '13',
  },
  { name: 'rising', rule: 'ja4.2.supported', field: 0x0303, supported: [0x0301, 0x0304, 0x0302], mark: '13' },
  {
    name: 'supported_versions with 1.2 alone',
    rule: 'ja4.2.supported',
    bug: 'version-source',
    field: 0x0303,
    supported: [0x0303],
    mark: '12',
  },
  {
    name: 'supported_versions lower than the field',
    rule: 'ja4.2.supported',
    bug: 'version-source',
    field: 0x0303,
    supported: [0x0301, 0x0302],
    mark: '11',
  },
  {
    name: 'GREASE among the versions',
    rule: 'ja4.2.supported',
    bug: 'grease-in-versions',
    field: 0x0303,
    supported: [0xfafa, 0x0303, 0x0304, 0x0a0a],
    mark: '13',
  },
  { name: 'no version supported', rule: 'ja4.2.empty', field: 0x0303, supported: [], mark: '00' },
  { name: 'only GREASE supported', rule: 'ja4.2.empty', field: 0x0303, supported: [0x8a8a], mark: '00' },
  { name: 'a draft alone', rule: 'ja4.2.draft', field: 0x0303, supported: [0x7f1c], mark: '00' },
  { name: 'a draft and 1.3', rule: 'ja4.2.draft', field: 0x0303, supported: [0x7f1c, 0x0304], mark: '00' },
]

const versionCases = VERSIONS.map(
  ({ name, rule, bug, transport = 'tcp', field, supported, mark }): Ja4Case => {
    const given = supported === null ? [] : [supportedVersions(...supported)]
    const a = `${transport === 'dtls' ? 'd' : 't'}${mark}i02${supported === null ? '02' : '03'}00`
    return {
      name: `version: ${name}`,
      rule,
      ...(bug && { bug }),
      transport,
      hello: { ...plain(...given), legacyVersion: field },
      r: `${a}_1301,c02f_000d,0017${supported === null ? '' : ',002b'}_0804,0403`,
      ro: `${a}_c02f,1301_${supported === null ? '' : '002b,'}0017,000d_0804,0403`,
    }
  },
)

const PROTOCOLS: readonly {
  readonly rule: Rule
  readonly bug?: Bug
  /** In hex. */
  readonly names: readonly string[]
  readonly mark: string
}[] = [
  { rule: 'ja4.5.text', bug: 'alpn-framing', names: ['6832', '687474702f312e31'], mark: 'h2' },
  { rule: 'ja4.5.text', bug: 'alpn-second-byte', names: ['687474702f312e31'], mark: 'h1' },
  { rule: 'ja4.5.text', names: ['4832'], mark: 'H2' },
  { rule: 'ja4.5.text', names: ['632d776562727463'], mark: 'cc' },
  { rule: 'ja4.5.text', names: ['30ff39'], mark: '09' },
  { rule: 'ja4.5.text', names: ['417a'], mark: 'Az' },
  { rule: 'ja4.5.single', bug: 'alpn-single', names: ['71'], mark: 'qq' },
  { rule: 'ja4.5.single', names: ['20'], mark: '20' },
  { rule: 'ja4.5.single', names: ['00'], mark: '00' },
  { rule: 'ja4.5.hex', names: ['6120'], mark: '60' },
  { rule: 'ja4.5.hex', names: ['2061'], mark: '21' },
  { rule: 'ja4.5.hex', names: ['3031abcd'], mark: '3d' },
  { rule: 'ja4.5.hex', names: ['30abcd31'], mark: '01' },
  { rule: 'ja4.5.hex', bug: 'alpn-hex', names: ['baad'], mark: 'bd' },
  { rule: 'ja4.5.hex', names: ['2d2d'], mark: '2d' },
  { rule: 'ja4.5.hex', names: ['5f5f'], mark: '5f' },
  { rule: 'ja4.5.hex', names: ['e8b2'], mark: 'e2' },
  { rule: 'ja4.5.hex', names: ['2f61'], mark: '21' },
  { rule: 'ja4.5.hex', names: ['3a5b'], mark: '3b' },
  { rule: 'ja4.5.hex', names: ['4060'], mark: '40' },
  { rule: 'ja4.5.hex', names: ['7b7b'], mark: '7b' },
  { rule: 'ja4.5.grease', names: ['0a0a', '6832'], mark: '0a' },
  { rule: 'ja4.5.grease', names: ['fafa', '6832'], mark: 'fa' },
  { rule: 'ja4.5.none', names: ['', '6832'], mark: '00' },
  { rule: 'ja4.5.none', names: [], mark: '00' },
]

const protocolCases = PROTOCOLS.map(({ rule, bug, names, mark }): Ja4Case => {
  return {
    name: `ALPN: ${names.length === 0 ? 'an empty list' : names.map((name) => name || 'nothing').join(', ')}`,
    rule,
    ...(bug && { bug }),
    hello: plain(alpn(...names.map((name) => Buffer.from(name, 'hex')))),
    r: `t12i0203${mark}_1301,c02f_000d,0017_0804,0403`,
    ro: `t12i0203${mark}_c02f,1301_0010,0017,000d_0804,0403`,
  }
})

export const JA4_CASES: readonly Ja4Case[] = [
  {
    name: 'hash: the example of the specification',
    rule: 'hash',
    hello: bare(
      [
        ...[0x8a8a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030],
        ...[0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c, 0x009d, 0x002f, 0x0035],
      ],
      ...only(0xfafa, 0x001b),
      serverName('example.test'),
      ...only(0x0033),
      alpn(Buffer.from('h2'), Buffer.from('http/1.1')),
      ...only(0x4469, 0x0017, 0x002d),
      signatureAlgorithms(0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601),
      ...only(0x0005, 0x0023, 0x0012),
      supportedVersions(0x5a5a, 0x0304, 0x0303),
      ...only(0xff01, 0x000b, 0x000a, 0x0015, 0x3a3a),
    ),
    r: 't13d1516h2_002f,0035,009c,009d,1301,1302,1303,c013,c014,c02b,c02c,c02f,c030,cca8,cca9_0005,000a,000b,000d,0012,0015,0017,001b,0023,002b,002d,0033,4469,ff01_0403,0804,0401,0503,0805,0501,0806,0601',
    ro: 't13d1516h2_1301,1302,1303,c02b,c02f,c02c,c030,cca9,cca8,c013,c014,009c,009d,002f,0035_001b,0000,0033,0010,4469,0017,002d,000d,0005,0023,0012,002b,ff01,000b,000a,0015_0403,0804,0401,0503,0805,0501,0806,0601',
  },

  {
    name: 'transport: TCP',
    rule: 'ja4.1',
    hello: plain(supportedVersions(0x0304)),
    r: 't13i020300_1301,c02f_000d,0017,002b_0804,0403',
    ro: 't13i020300_c02f,1301_002b,0017,000d_0804,0403',
  },
  {
    name: 'transport: QUIC',
    rule: 'ja4.1',
    transport: 'quic',
    hello: plain(supportedVersions(0x0304), alpn(Buffer.from('h3')), extension(0x0039)),
    r: 'q13i0205h3_1301,c02f_000d,0017,002b,0039_0804,0403',
    ro: 'q13i0205h3_c02f,1301_002b,0010,0039,0017,000d_0804,0403',
  },
  {
    name: 'transport: QUIC with the parameters of a draft',
    rule: 'ja4.1',
    transport: 'quic',
    hello: plain(supportedVersions(0x0304), extension(0xffa5)),
    r: 'q13i020400_1301,c02f_000d,0017,002b,ffa5_0804,0403',
    ro: 'q13i020400_c02f,1301_002b,ffa5,0017,000d_0804,0403',
  },
  {
    name: 'transport: TCP with the parameters of QUIC',
    rule: 'ja4.1',
    hello: plain(supportedVersions(0x0304), extension(0x0039)),
    r: 't13i020400_1301,c02f_000d,0017,002b,0039_0804,0403',
    ro: 't13i020400_c02f,1301_002b,0039,0017,000d_0804,0403',
  },
  {
    name: 'transport: DTLS',
    rule: 'ja4.1',
    transport: 'dtls',
    hello: { ...plain(), legacyVersion: 0xfefd, cookie: Buffer.from('636f6f6b6965', 'hex') },
    r: 'dd2i020200_1301,c02f_000d,0017_0804,0403',
    ro: 'dd2i020200_c02f,1301_0017,000d_0804,0403',
  },

  ...versionCases,

  {
    name: 'SNI: a name',
    rule: 'ja4.3',
    hello: plain(serverName('example.test')),
    r: 't12d020300_1301,c02f_000d,0017_0804,0403',
    ro: 't12d020300_c02f,1301_0000,0017,000d_0804,0403',
  },
  {
    name: 'SNI: an IP address',
    rule: 'ja4.3',
    bug: 'sni-contents',
    hello: plain(serverName('192.0.2.1')),
    r: 't12d020300_1301,c02f_000d,0017_0804,0403',
    ro: 't12d020300_c02f,1301_0000,0017,000d_0804,0403',
  },
  {
    name: 'SNI: an empty body, as a server answers',
    rule: 'ja4.3',
    bug: 'sni-contents',
    hello: plain(extension(0x0000)),
    r: 't12d020300_1301,c02f_000d,0017_0804,0403',
    ro: 't12d020300_c02f,1301_0000,0017,000d_0804,0403',
  },
  {
    name: 'SNI: an empty list',
    rule: 'ja4.3',
    hello: plain(extension(0x0000, '0000')),
    r: 't12d020300_1301,c02f_000d,0017_0804,0403',
    ro: 't12d020300_c02f,1301_0000,0017,000d_0804,0403',
  },
  {
    name: 'SNI: none',
    rule: 'ja4.3',
    hello: plain(),
    r: 't12i020200_1301,c02f_000d,0017_0804,0403',
    ro: 't12i020200_c02f,1301_0017,000d_0804,0403',
  },

  {
    name: 'count: none at all',
    rule: 'ja4.4',
    bug: 'empty-hash',
    hello: bare([]),
    r: 't12i000000__',
    ro: 't12i000000__',
  },
  ...[9, 10, 99].map(
    (count): Ja4Case => ({
      name: `count: ${count}`,
      rule: 'ja4.4',
      hello: bare(numbers(0xc001, count), ...only(...numbers(0x4001, count))),
      r: `t12i${count === 9 ? '0909' : `${count}${count}`}00_${hex(numbers(0xc001, count))}_${hex(numbers(0x4001, count))}`,
      ro: `t12i${count === 9 ? '0909' : `${count}${count}`}00_${hex(numbers(0xc001, count))}_${hex(numbers(0x4001, count))}`,
    }),
  ),
  ...[100, 300].map(
    (count): Ja4Case => ({
      name: `count: ${count}`,
      rule: 'ja4.4',
      bug: 'count-cap',
      hello: bare(numbers(0xc001, count), ...only(...numbers(0x4001, count))),
      r: `t12i999900_${hex(numbers(0xc001, count))}_${hex(numbers(0x4001, count))}`,
      ro: `t12i999900_${hex(numbers(0xc001, count))}_${hex(numbers(0x4001, count))}`,
    }),
  ),
  {
    name: 'count: duplicates',
    rule: 'ja4.4',
    hello: bare([0x1301, 0xc02f, 0x1301], ...only(0x0017, 0x000a, 0x0017)),
    r: 't12i030300_1301,1301,c02f_000a,0017,0017',
    ro: 't12i030300_1301,c02f,1301_0017,000a,0017',
  },
  {
    name: 'count: signalling suites and private numbers',
    rule: 'ja4.4',
    bug: 'hidden-values',
    hello: bare([0x00ff, 0x1301, 0x5600, 0xfefe], ...only(0xfe0d, 0x44cd, 0xca34, 0x0017)),
    r: 't12i040400_00ff,1301,5600,fefe_0017,44cd,ca34,fe0d',
    ro: 't12i040400_00ff,1301,5600,fefe_fe0d,44cd,ca34,0017',
  },
  {
    name: 'count: SNI and ALPN',
    rule: 'ja4.4',
    bug: 'sni-in-c',
    hello: plain(serverName('example.test'), alpn(Buffer.from('h2'))),
    r: 't12d0204h2_1301,c02f_000d,0017_0804,0403',
    ro: 't12d0204h2_c02f,1301_0000,0010,0017,000d_0804,0403',
  },

  ...protocolCases,
  {
    name: 'ALPN: an empty body',
    rule: 'ja4.5.none',
    hello: plain(extension(0x0010)),
    r: 't12i020300_1301,c02f_000d,0017_0804,0403',
    ro: 't12i020300_c02f,1301_0010,0017,000d_0804,0403',
  },
  {
    name: 'ALPN: a list longer than its extension',
    rule: 'ja4.5.none',
    hello: plain(extension(0x0010, '0004026832')),
    r: 't12i020300_1301,c02f_000d,0017_0804,0403',
    ro: 't12i020300_c02f,1301_0010,0017,000d_0804,0403',
  },
  {
    name: 'ALPN: a name longer than its list',
    rule: 'ja4.5.none',
    hello: plain(extension(0x0010, '0003056832')),
    r: 't12i020300_1301,c02f_000d,0017_0804,0403',
    ro: 't12i020300_c02f,1301_0010,0017,000d_0804,0403',
  },
  {
    name: 'ALPN: none',
    rule: 'ja4.5.none',
    hello: plain(),
    r: 't12i020200_1301,c02f_000d,0017_0804,0403',
    ro: 't12i020200_c02f,1301_0017,000d_0804,0403',
  },
  {
    name: 'ALPN: two extensions',
    rule: 'ja4.5.first',
    hello: plain(alpn(Buffer.from('h2')), alpn(Buffer.from('http/1.1'))),
    r: 't12i0204h2_1301,c02f_000d,0017_0804,0403',
    ro: 't12i0204h2_c02f,1301_0010,0010,0017,000d_0804,0403',
  },
  {
    name: 'ALPN: two extensions, the first one empty',
    rule: 'ja4.5.first',
    hello: plain(alpn(), alpn(Buffer.from('h2'))),
    r: 't12i020400_1301,c02f_000d,0017_0804,0403',
    ro: 't12i020400_c02f,1301_0010,0010,0017,000d_0804,0403',
  },

  {
    name: 'ciphers: ascending by number, in lower-case hex',
    rule: 'ja4.6',
    bug: 'decimal-numbers',
    hello: bare([0xcca9, 0x0005, 0xc02b, 0x1301, 0x00ff, 0xc013], ...only(0x0017)),
    r: 't12i060100_0005,00ff,1301,c013,c02b,cca9_0017',
    ro: 't12i060100_cca9,0005,c02b,1301,00ff,c013_0017',
  },
  {
    name: 'ciphers: none',
    rule: 'ja4.6',
    bug: 'empty-hash',
    hello: bare([], ...only(0x0017)),
    r: 't12i000100__0017',
    ro: 't12i000100__0017',
  },
  {
    name: 'ciphers: only GREASE',
    rule: 'ja4.6',
    hello: bare([0x2a2a], ...only(0x0017)),
    r: 't12i000100__0017',
    ro: 't12i000100__0017',
  },

  {
    name: 'extensions: ascending by number',
    rule: 'ja4.7.list',
    bug: 'no-padding',
    hello: bare([0x1301], ...only(0xff01, 0x0023, 0x0005, 0x4469, 0x001b)),
    r: 't12i010500_1301_0005,001b,0023,4469,ff01',
    ro: 't12i010500_1301_ff01,0023,0005,4469,001b',
  },
  {
    name: 'extensions: algorithms in the order sent, duplicates kept',
    rule: 'ja4.7.algorithms',
    bug: 'other-algorithms',
    hello: bare([0x1301], signatureAlgorithms(0x0806, 0x0403, 0x0201, 0x0403), ...only(0x0017)),
    r: 't12i010200_1301_000d,0017_0806,0403,0201,0403',
    ro: 't12i010200_1301_000d,0017_0806,0403,0201,0403',
  },
  {
    name: 'extensions: algorithms and nothing else',
    rule: 'ja4.7.algorithms',
    hello: bare([0x1301], signatureAlgorithms(0x0804)),
    r: 't12i010100_1301_000d_0804',
    ro: 't12i010100_1301_000d_0804',
  },
  {
    name: 'extensions: GREASE among the algorithms, as Chrome 152 sends it',
    rule: 'ja4.7.algorithms',
    bug: 'grease-in-algorithms',
    hello: bare([0x1301], signatureAlgorithms(0x5a5a, 0x0403, 0x0804, 0xdada, 0x0401)),
    r: 't12i010100_1301_000d_0403,0804,0401',
    ro: 't12i010100_1301_000d_0403,0804,0401',
  },
  {
    name: 'extensions: algorithms of LibreSSL that look like GREASE',
    rule: 'ja4.7.algorithms',
    hello: bare([0x1301], signatureAlgorithms(0xefef, 0xeeee, 0xeded)),
    r: 't12i010100_1301_000d_efef,eeee,eded',
    ro: 't12i010100_1301_000d_efef,eeee,eded',
  },
  {
    name: 'extensions: no algorithms',
    rule: 'ja4.7.none',
    bug: 'trailing-underscore',
    hello: bare([0x1301], ...only(0x0017, 0x000a)),
    r: 't12i010200_1301_000a,0017',
    ro: 't12i010200_1301_0017,000a',
  },
  {
    name: 'extensions: an empty list of algorithms',
    rule: 'ja4.7.none',
    bug: 'trailing-underscore',
    hello: bare([0x1301], signatureAlgorithms(), ...only(0x0017)),
    r: 't12i010200_1301_000d,0017',
    ro: 't12i010200_1301_000d,0017',
  },
  {
    name: 'extensions: only GREASE among the algorithms',
    rule: 'ja4.7.none',
    bug: 'trailing-underscore',
    hello: bare([0x1301], signatureAlgorithms(0x9a9a), ...only(0x0017)),
    r: 't12i010200_1301_000d,0017',
    ro: 't12i010200_1301_000d,0017',
  },
  {
    name: 'extensions: algorithms for delegated credentials and for certificates',
    rule: 'ja4.7.only-000d',
    bug: 'other-algorithms',
    hello: bare(
      [0x1301],
      extension(0x0022, '000403030503'),
      extension(0x0032, '000402030601'),
      signatureAlgorithms(0x0804),
    ),
    r: 't12i010300_1301_000d,0022,0032_0804',
    ro: 't12i010300_1301_0022,0032,000d_0804',
  },
  {
    name: 'extensions: algorithms for certificates alone',
    rule: 'ja4.7.only-000d',
    hello: bare([0x1301], extension(0x0032, '000402030601'), ...only(0x0017)),
    r: 't12i010200_1301_0017,0032',
    ro: 't12i010200_1301_0032,0017',
  },

  {
    name: 'forms: SNI and ALPN keep their places in the original order',
    rule: 'ja4.8',
    hello: bare(
      [0xc02f, 0x1a1a, 0x1301],
      ...only(0xff01, 0x3a3a),
      alpn(Buffer.from('h2')),
      ...only(0x0017),
      serverName('example.test'),
      signatureAlgorithms(0x0804, 0x0403),
    ),
    r: 't12d0205h2_1301,c02f_000d,0017,ff01_0804,0403',
    ro: 't12d0205h2_c02f,1301_ff01,0010,0017,0000,000d_0804,0403',
  },
  {
    name: 'forms: nothing but SNI',
    rule: 'ja4.8.only-sni',
    hello: bare([0x1301], serverName('example.test')),
    r: 't12d010100_1301_',
    ro: 't12d010100_1301_0000',
  },
  {
    name: 'forms: nothing but SNI and ALPN',
    rule: 'ja4.8.only-sni',
    hello: bare([0x1301], serverName('example.test'), alpn(Buffer.from('h2'))),
    r: 't12d0102h2_1301_',
    ro: 't12d0102h2_1301_0000,0010',
  },
  {
    name: 'forms: nothing but GREASE',
    rule: 'ja4.8',
    bug: 'empty-hash',
    hello: bare([0x0a0a], ...only(0xfafa)),
    r: 't12i000000__',
    ro: 't12i000000__',
  },

  {
    name: 'ECH: the outer hello',
    rule: 'ja4.10',
    bug: 'hidden-values',
    hello: plain(
      serverName('public.example.test'),
      extension(0xfe0d, '0000010001aa002000'),
      supportedVersions(0x0304),
    ),
    r: 't13d020500_1301,c02f_000d,0017,002b,fe0d_0804,0403',
    ro: 't13d020500_c02f,1301_0000,fe0d,002b,0017,000d_0804,0403',
  },

  {
    name: 'GREASE: all 16 values, everywhere',
    rule: 'grease',
    hello: bare(
      [...GREASE, 0x1301],
      ...only(...GREASE),
      supportedVersions(...GREASE, 0x0303),
      signatureAlgorithms(...GREASE, 0x0804),
    ),
    r: 't12i010200_1301_000d,002b_0804',
    ro: 't12i010200_1301_002b,000d_0804',
  },
  {
    name: 'GREASE: values that are none',
    rule: 'grease',
    bug: 'grease-mask',
    hello: bare(NOT_GREASE, ...only(...NOT_GREASE), signatureAlgorithms(...NOT_GREASE)),
    r: 't12i101100_00aa,0a0b,0a1a,0b0a,1a0a,aa00,abab,eded,eeee,efef_000d,00aa,0a0b,0a1a,0b0a,1a0a,aa00,abab,eded,eeee,efef_0a1a,1a0a,0a0b,0b0a,abab,eded,eeee,efef,00aa,aa00',
    ro: 't12i101100_0a1a,1a0a,0a0b,0b0a,abab,eded,eeee,efef,00aa,aa00_0a1a,1a0a,0a0b,0b0a,abab,eded,eeee,efef,00aa,aa00,000d_0a1a,1a0a,0a0b,0b0a,abab,eded,eeee,efef,00aa,aa00',
  },
  {
    name: 'GREASE: a version that is none',
    rule: 'grease',
    bug: 'grease-mask',
    hello: plain(supportedVersions(0x0304, 0x0a1a)),
    r: 't00i020300_1301,c02f_000d,0017,002b_0804,0403',
    ro: 't00i020300_c02f,1301_002b,0017,000d_0804,0403',
  },

  {
    name: 'a hello without extensions',
    rule: 'framing.no-extensions',
    bug: 'empty-hash',
    hello: { legacyVersion: 0x0301, ciphers: [0x0005], extensions: null },
    r: 't10i010000_0005_',
    ro: 't10i010000_0005_',
  },
  {
    name: 'a hello with an empty block of extensions',
    rule: 'framing.no-extensions',
    hello: { legacyVersion: 0x0301, ciphers: [0x0005], extensions: [] },
    r: 't10i010000_0005_',
    ro: 't10i010000_0005_',
  },
  {
    name: 'a DTLS hello without extensions, with a session to resume and a cookie',
    rule: 'framing.no-extensions',
    transport: 'dtls',
    hello: {
      legacyVersion: 0xfeff,
      sessionId: Buffer.alloc(32, 0x5e),
      cookie: Buffer.alloc(20, 0xc0),
      ciphers: [0x0035],
      extensions: null,
    },
    r: 'dd1i010000_0035_',
    ro: 'dd1i010000_0035_',
  },
]
