import { data, fieldBlock, frame, getRequest, headers, PREFACE, settings } from '../proxy/http2-frames.ts'
import {
  bare,
  END_HEADERS,
  END_STREAM,
  ended,
  fault,
  get,
  HAS_PRIORITY,
  holdPost,
  malformed,
  more,
  node,
  type NodeOutcome,
  open,
  PADDED,
  padded,
  post,
  refused,
  reset,
  type Row,
  served,
  type Table,
  word,
} from './http2-conformance-case.ts'
import { CANCEL, HEADERS, INTERNAL_ERROR, PROTOCOL_ERROR, STREAM_CLOSED } from './http2-peer.ts'

const leftOut = (...streams: number[]): NodeOutcome =>
  node(
    'Behind the first request of a connection, Node (24.21) has nghttp2 leave out the field, and no sign of it is left: the app never sees it',
    served(...streams),
  )

const EXTENDED = getRequest({ ':method': 'CONNECT', ':protocol': 'websocket' })
const NOT_OFFERED = node('Node does not offer it', malformed(1))

function extended(changes: Readonly<Record<string, string | null>> = {}, ...more: string[]): Buffer[] {
  const fields = getRequest({ ':method': 'CONNECT', ':protocol': 'websocket', ...changes }, ...more)
  return [headers(1, fields, { hasEnded: false })]
}

/** Fields that nghttp2 leaves out. */
const MALFORMED: readonly (readonly [title: string, name: string, value: string])[] = [
  ['a name with a blank', 'x smuggled', 'a'],
  ['a name with a colon', 'x:smuggled', 'a'],
  ['a name with a line break', 'x\r\nsmuggled', 'a'],
  ['a name beyond ASCII', 'x\xffsmuggled', 'a'],
  ['an empty name', '', 'smuggled'],
  ['a value with a line break', 'x-a', 'b\r\nsmuggled: d'],
  ['a value with a line feed', 'x-a', 'b\nsmuggled'],
  ['a value with CR', 'x-a', 'b\rsmuggled'],
  ['a value with NUL', 'x-a', 'b\0smuggled'],
  ['a value with DEL', 'x-a', 'b\x7fsmuggled'],
  ['a value with ESC', 'x-a', 'b\x1bsmuggled'],
  ['a cookie with NUL', 'cookie', 'smuggled=\0'],
]
const BLANK_ENDS = [' smuggled', 'smuggled ', '\tsmuggled', 'smuggled\t', ' ', '\t', ' smuggled ']

/** A request, or a body and trailers. */
const trailing = (...fields: string[]) => [holdPost(1), data(1, 'test', false), headers(1, fields)]
const pseudo = (changes: Readonly<Record<string, string | null>>, ...fields: string[]) => [
  headers(1, getRequest(changes, ...fields)),
]

/** RFC 9113 §8: requests. */
export const MESSAGE_RULES: Table = {
  'RFC 9113 §8.1': [
    ['GET', [get(1)], served(1)],
    ['HEAD', pseudo({ ':method': 'HEAD' }), served(1)],
    ['POST', [post(1), data(1, 'test')], served(1)],
    ['POST with an empty body', [post(1), data(1, '')], served(1)],
    ['POST with trailers', [post(1), data(1, 'test', false), headers(1, ['x-sum', '7'])], served(1)],
    ['POST with trailers and no DATA', [post(1), headers(1, ['x-sum', '7'])], served(1)],
    ['POST with trailers of no field', [post(1), data(1, 'test', false), frame(HEADERS, 5, 1)], served(1)],
    [
      'second HEADERS that end nothing',
      [holdPost(1), headers(1, ['x-sum', '7'], { hasEnded: false })],
      reset(1, PROTOCOL_ERROR),
    ],
    ['trailers, and DATA', [holdPost(1), headers(1, ['x-sum', '7']), data(1, 'x')], fault(1, STREAM_CLOSED)],
    [
      'trailers twice',
      [holdPost(1), headers(1, ['x-sum', '7']), headers(1, ['x-sum', '7'])],
      fault(1, STREAM_CLOSED),
    ],
  ],
  'RFC 9113 §8.1.1': [
    [
      'less DATA than its length',
      [post(1, 'content-length', '5'), data(1, 'test')],
      reset(1, PROTOCOL_ERROR),
    ],
    [
      'more DATA than its length',
      [post(1, 'content-length', '1'), data(1, 'test')],
      reset(1, PROTOCOL_ERROR),
      node('nghttp2 ends the connection (RFC 9113 §5.4: an endpoint may)', ended(INTERNAL_ERROR)),
    ],
    [
      'more DATA than a length of 0',
      [post(1, 'content-length', '0'), data(1, 'test')],
      reset(1, PROTOCOL_ERROR),
      node('the same', ended(INTERNAL_ERROR)),
    ],
    [
      'less DATA than its length, in several frames',
      [post(1, 'content-length', '9'), data(1, 'test', false), data(1, 'test')],
      reset(1, PROTOCOL_ERROR),
    ],
    [
      'less DATA than its length, and trailers',
      [post(1, 'content-length', '9'), data(1, 'test', false), headers(1, ['b', 'c'])],
      reset(1, PROTOCOL_ERROR),
    ],
    [
      'its length in several frames',
      [post(1, 'content-length', '8'), data(1, 'test', false), data(1, 'test')],
      served(1),
    ],
    [
      'its length, and trailers',
      [post(1, 'content-length', '4'), data(1, 'test', false), headers(1, ['b', 'c'])],
      served(1),
    ],
    [
      'padding does not count towards its length',
      [post(1, 'content-length', '4'), frame(0, 9, 1, padded('test', 9))],
      served(1),
    ],
    ['a length, and no DATA', [get(1, 'content-length', '5')], reset(1, PROTOCOL_ERROR)],
    ['a length of 0, and no DATA', [get(1, 'content-length', '0')], served(1)],
    ['a length of 0, and DATA of no bytes', [post(1, 'content-length', '0'), data(1, '')], served(1)],
    ...[
      ['twice, the same', '4', '4'],
      ['twice', '4', '5'],
    ].map(
      ([title, ...lengths]): Row => [
        `a length ${title}`,
        [post(1, ...lengths.flatMap((length) => ['content-length', length])), data(1, 'test')],
        malformed(1),
      ],
    ),
    ...['', '+4', '-4', '4, 4', '4 4', '4;', '0x4', '4.0', '99999999999999999999'].map(
      (length): Row => [
        `a length of “${length}”`,
        [post(1, 'content-length', length), data(1, 'test')],
        malformed(1),
      ],
    ),
  ],
  'RFC 9113 §8.2': [
    ['a name in upper case', [get(1, 'X-Up', 'a')], reset(1, PROTOCOL_ERROR)],
    ['a name in upper case in trailers', trailing('X-Up', 'a'), reset(1, PROTOCOL_ERROR)],
    [
      'a name in upper case and Huffman coding',
      [frame(HEADERS, 5, 1, Buffer.concat([fieldBlock(getRequest()), Buffer.from('0081fc0161', 'hex')]))],
      reset(1, PROTOCOL_ERROR),
    ],
    ...MALFORMED.flatMap(([title, name, value]): Row[] => [
      [`${title}, in the first request`, [first(name, value)], malformed(1)],
      [`${title}, later`, [get(1), 1, get(3, name, value)], malformed(3), leftOut(1, 3)],
      [
        `${title}, in trailers`,
        trailing(name, value),
        malformed(1),
        node('Node leaves out the field', served()),
      ],
    ]),
    ...BLANK_ENDS.flatMap((value): Row[] => [
      [`the value “${value}”, in the first request`, [first('x-a', value)], malformed(1)],
      [`the value “${value}”, later`, [get(1), 1, get(3, 'x-a', value)], malformed(3)],
      [`the value “${value}” in trailers`, trailing('x-a', value), malformed(1)],
      [`the value “${value}” of a cookie`, [get(1, 'cookie', value)], malformed(1)],
    ]),
    ['a tab and a blank in a value', [get(1, 'x-a', 'b\t c')], served(1)],
    ['a value beyond ASCII', [get(1, 'x-a', '\xc3\xa4\x80\xff')], served(1)],
    ['an empty value', [get(1, 'x-a', '')], served(1)],
    ['every character that a name may have', [get(1, "!#$%&'*+-.^_`|~09az", 'a')], served(1)],
    ...[
      '(',
      ')',
      ',',
      '/',
      ';',
      '<',
      '=',
      '>',
      '?',
      '@',
      '[',
      '\\',
      ']',
      '{',
      '}',
      '"',
      '\x7f',
      '\x80',
      '\0',
      ' ',
    ].map(
      (character): Row => [
        `“${character}” in a name`,
        [get(1), 1, get(3, `x${character}smuggled`, 'a')],
        malformed(3),
        leftOut(1, 3),
      ],
    ),
    [
      'a malformed field in a block of several frames, in the first request',
      [bare(Buffer.concat([PREFACE, settings(), ...inFrames(getRequest({}, 'x smuggled', 'a'))]))],
      malformed(1),
    ],
    [
      'a malformed field in a block with padding and a priority, in the first request',
      [bare(Buffer.concat([PREFACE, settings(), dressed(getRequest({}, 'x smuggled', 'a'))]))],
      malformed(1),
    ],
    [
      'a malformed field behind a request that is reset',
      [bare(Buffer.concat([PREFACE, settings(), get(1, 'X-Up', 'a'), get(3)]))],
      served(3),
    ],
  ],
  'RFC 9113 §8.2.2': [
    ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'].flatMap(
      (name): Row[] => [
        [name, [get(1, name, 'close')], reset(1, PROTOCOL_ERROR)],
        [`${name} without a value`, [get(1, name, '')], reset(1, PROTOCOL_ERROR)],
        [`${name} in trailers`, trailing(name, 'close'), reset(1, PROTOCOL_ERROR)],
      ],
    ),
    ...['trailers, deflate', 'gzip', '', 'trailers;q=1', 'trailers,'].map(
      (value): Row => [`te of “${value}”`, [get(1, 'te', value)], reset(1, PROTOCOL_ERROR)],
    ),
    ['te of trailers', [get(1, 'te', 'trailers')], served(1)],
    ['http2-settings is a field like any other', [get(1, 'http2-settings', 'AAMAAABk')], served(1)],
  ],
  'RFC 9113 §8.3': [
    ['an unknown pseudo-header', [get(1, ':test', 'x')], reset(1, PROTOCOL_ERROR)],
    [
      'an unknown one among the others',
      [headers(1, [':test', 'x', ...getRequest()])],
      reset(1, PROTOCOL_ERROR),
    ],
    ['a colon for a name', [headers(1, [':', 'x', ...getRequest()])], reset(1, PROTOCOL_ERROR)],
    [
      'a pseudo-header in upper case',
      [headers(1, [':Path', '/', ...getRequest({ ':path': null })])],
      reset(1, PROTOCOL_ERROR),
    ],
    ['one of an answer', [headers(1, [':status', '200', ...getRequest()])], reset(1, PROTOCOL_ERROR)],
    ...[':method', ':path', ':scheme', ':authority', ':status', ':protocol', ':x'].map(
      (name): Row => [`${name} in trailers`, trailing(name, 'GET'), reset(1, PROTOCOL_ERROR)],
    ),
    ...[':method', ':path', ':scheme', ':authority'].map(
      (name): Row => [
        `${name} behind a field`,
        [headers(1, [...getRequest({ [name]: null }, 'x-a', 'b'), name, pseudoValue(name)])],
        reset(1, PROTOCOL_ERROR),
      ],
    ),
  ],
  'RFC 9113 §8.3.1': [
    ['an empty path', pseudo({ ':path': '' }), reset(1, PROTOCOL_ERROR)],
    ...[':method', ':scheme', ':path'].flatMap((name): Row[] => [
      [`no ${name}`, pseudo({ [name]: null }), reset(1, PROTOCOL_ERROR)],
      [`${name} twice`, [headers(1, [...getRequest(), name, pseudoValue(name)])], reset(1, PROTOCOL_ERROR)],
    ]),
    [':authority twice', [headers(1, [...getRequest(), ':authority', 'a'])], reset(1, PROTOCOL_ERROR)],
    [
      'the pseudo-headers in another order',
      [headers(1, [':path', '/', ':authority', 'a', ':scheme', 'https', ':method', 'GET'])],
      served(1),
    ],
    ['no :authority, and a Host', pseudo({ ':authority': null }, 'host', 'a'), served(1)],
    ['a Host that is the :authority', pseudo({}, 'host', 'a'), served(1)],
    ...[
      ['an empty method', { ':method': '' }],
      ['a method with a blank', { ':method': 'GE T' }],
      ['a method with a line break', { ':method': 'GET\r\nX' }],
      ['no :authority and no Host', { ':authority': null }],
      ['an empty :authority', { ':authority': '' }],
      ['an :authority with a user', { ':authority': 'u@a' }],
      ['an :authority with a user and a password', { ':authority': 'u:p@a' }],
      ['an :authority with a path', { ':authority': 'a/b' }],
      ['an :authority with a query', { ':authority': 'a?b' }],
      ['an :authority with a blank', { ':authority': 'a b' }],
      ['an :authority with a comma', { ':authority': 'a,b' }],
      ['an :authority with a word for a port', { ':authority': 'a:b' }],
      ['an :authority with a bracket', { ':authority': '[::1' }],
      ['a path without a slash', { ':path': 'a' }],
      ['a path with a blank', { ':path': '/a b' }],
      ['a path with a tab', { ':path': '/a\tb' }],
      ['a path with a fragment', { ':path': '/a#b' }],
      ['a path with a line break', { ':path': '/a\r\nb' }],
      ['a path with NUL', { ':path': '/\0' }],
      ['a path with DEL', { ':path': '/\x7f' }],
      ['a path beyond ASCII', { ':path': '/\xe4' }],
      ['a URL for a path', { ':path': 'https://a/' }],
      ['an asterisk for GET', { ':path': '*' }],
      ['another scheme', { ':scheme': 'ftp' }],
      ['an empty scheme', { ':scheme': '' }],
      ['a scheme with a colon', { ':scheme': 'https:' }],
    ].map(
      ([title, changes]): Row => [
        title as string,
        pseudo(changes as Record<string, string | null>),
        malformed(1),
      ],
    ),
    ['a Host that is another than :authority', pseudo({}, 'host', 'b'), malformed(1)],
    ['two Hosts', pseudo({ ':authority': null }, 'host', 'a', 'host', 'a'), malformed(1)],
    ['an empty Host', pseudo({ ':authority': null }, 'host', ''), malformed(1)],
    ['a Host with a user', pseudo({ ':authority': null }, 'host', 'u@a'), malformed(1)],
    ['an asterisk for OPTIONS', pseudo({ ':method': 'OPTIONS', ':path': '*' }), served(1)],
  ],
  'RFC 9113 §8.5': [
    ['CONNECT', [headers(1, [':method', 'CONNECT', ':authority', 'a:443'])], refused(1, 501)],
    ['CONNECT with a path', pseudo({ ':method': 'CONNECT' }), malformed(1)],
    ['CONNECT with a scheme', pseudo({ ':method': 'CONNECT', ':path': null }), malformed(1)],
    ['CONNECT without an authority', [headers(1, [':method', 'CONNECT'])], malformed(1)],
  ],
  'RFC 8441 §4': [
    ['a protocol of a GET', [headers(1, [':protocol', 'websocket', ...getRequest()])], malformed(1)],
    ...[':scheme', ':path', ':authority'].map(
      (name): Row => [`an extended CONNECT without ${name}`, extended({ [name]: null }), malformed(1)],
    ),
    [
      'an extended CONNECT with Host for :authority',
      extended({ ':authority': null }, 'host', 'a'),
      malformed(1),
    ],
    ['an extended CONNECT to *', extended({ ':path': '*' }), malformed(1)],
    ['an extended CONNECT to a URL', extended({ ':path': 'http://a/' }), malformed(1)],
    ['an extended CONNECT with Upgrade', extended({}, 'upgrade', 'websocket'), malformed(1)],
    ['an extended CONNECT with a length', extended({}, 'content-length', '5'), malformed(1)],
    ['two protocols', [headers(1, [':protocol', 'websocket', ...EXTENDED])], malformed(1)],
    ['an unknown protocol', extended({ ':protocol': 'connect-udp' }), refused(1, 501), NOT_OFFERED],
    ['an empty protocol', extended({ ':protocol': '' }), refused(1, 501), NOT_OFFERED],
    ['an extended CONNECT that has ended', [headers(1, EXTENDED)], refused(1, 400), NOT_OFFERED],
    ['the app opens no WebSocket, and says 200', extended(), refused(1, 502), NOT_OFFERED],
    [
      'HEADERS on a tunnel',
      [...extended({ ':path': '/hold' }), headers(1, ['a', 'b'])],
      reset(1, PROTOCOL_ERROR),
    ],
    [
      'a tunnel that is ended before an answer',
      [...extended({ ':path': '/hold' }), data(1, 'a')],
      reset(1, CANCEL),
      NOT_OFFERED,
    ],
  ],
}

/** A request that comes with the preface, as the first one of nearly all clients does. */
function first(name: string, value: string): Buffer {
  return bare(Buffer.concat([PREFACE, settings(), get(1, name, value)]))
}

function inFrames(fields: readonly string[]): Buffer[] {
  const bytes = fieldBlock(fields)
  return [open(1, bytes.subarray(0, 5)), more(1, bytes.subarray(5, 9), false), more(1, bytes.subarray(9))]
}

function dressed(fields: readonly string[]): Buffer {
  const payload = padded(Buffer.concat([word(0), Buffer.of(255), fieldBlock(fields)]), 7)
  return frame(HEADERS, END_STREAM | END_HEADERS | HAS_PRIORITY | PADDED, 1, payload)
}

function pseudoValue(name: string): string {
  return getRequest()[getRequest().indexOf(name) + 1]!
}
