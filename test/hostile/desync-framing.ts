import {
  begun,
  type Case,
  chunked,
  cut,
  family,
  GET_SEEN,
  get,
  INNER,
  MARK,
  NEXT,
  NEXT_SEEN,
  post,
  postSeen,
  type Row,
  refused,
  seen,
  served,
} from './desync-case.ts'

const LENGTH = `Content-Length: ${INNER.length + 5}\r\n`
const CODING = 'Transfer-Encoding: chunked\r\n'
/** Ends here for a reader of chunks, and is longer for a reader of the length. */
const EARLY_END = `0\r\n\r\n${INNER}`
const HIDDEN = chunked(INNER)

/** Both framings at once. */
const TWO_FRAMINGS: readonly Row[] = [
  refused('CL.TE', 400, post(LENGTH + CODING, EARLY_END)),
  refused('CL.TE, the coding first', 400, post(CODING + LENGTH, EARLY_END)),
  refused('CL.TE, in lower case', 400, post((LENGTH + CODING).toLowerCase(), EARLY_END)),
  refused('CL.TE by GET', 400, get(LENGTH + CODING) + EARLY_END),
  refused('CL.TE, something between', 400, post(`${LENGTH}A: b\r\n${CODING}`, EARLY_END)),
  refused('TE.CL', 400, post(`Content-Length: 4\r\n${CODING}`, HIDDEN)),
  refused('TE.CL, the coding first', 400, post(`${CODING}Content-Length: 4\r\n`, HIDDEN)),
  refused('TE.CL, a length of nothing', 400, post(`Content-Length: 0\r\n${CODING}`, HIDDEN)),
  refused('both, and they agree', 400, post(`Content-Length: ${HIDDEN.length}\r\n${CODING}`, HIDDEN)),
  refused('an invalid length beside chunks', 400, post(`Content-Length: x\r\n${CODING}`, HIDDEN)),
  refused('an empty length beside chunks', 400, post(`Content-Length:\r\n${CODING}`, HIDDEN)),
  refused('behind a second request', 400, get('', '/next') + post(LENGTH + CODING, EARLY_END), NEXT_SEEN),
]

/**
 * Lines that one reader takes for `Transfer-Encoding: chunked` and another does not. With a status: refused, beside a
 * length and alone. With `null`: another header, which frames nothing.
 */
const CODINGS: readonly (readonly [name: string, lines: string, status: number | null])[] = [
  ['a blank before the colon', 'Transfer-Encoding : chunked', 400],
  ['a tab before the colon', 'Transfer-Encoding\t: chunked', 400],
  ['a blank before the name', ' Transfer-Encoding: chunked', 400],
  ['a tab before the name', '\tTransfer-Encoding: chunked', 400],
  ['a vertical tab before the value', 'Transfer-Encoding: \x0bchunked', 400],
  ['a form feed before the value', 'Transfer-Encoding: \x0cchunked', 400],
  ['NUL before the value', 'Transfer-Encoding: \0chunked', 400],
  ['NUL behind the value', 'Transfer-Encoding: chunked\0', 400],
  ['NUL in the value', 'Transfer-Encoding: chun\0ked', 400],
  ['NUL behind the name', 'Transfer-Encoding\0: chunked', 400],
  ['NUL before the name', '\0Transfer-Encoding: chunked', 400],
  ['DEL in the value', 'Transfer-Encoding: chun\x7fked', 400],
  ['a blank of latin1 before the value', 'Transfer-Encoding: \xa0chunked', 400],
  ['a line end of latin1 before the value', 'Transfer-Encoding: \x85chunked', 400],
  ['a byte beyond ASCII behind the value', 'Transfer-Encoding: chunked\xff', 400],
  ['a byte beyond ASCII in the name', 'Transfer-Encoding\xff: chunked', 400],
  ['a dotless i', 'Transfer-Encod\xc4\xb1ng: chunked', 400],
  ['a byte order mark', '\xef\xbb\xbfTransfer-Encoding: chunked', 400],
  ['a bare carriage return before the value', 'Transfer-Encoding: \rchunked', 400],
  ['a bare carriage return behind the value', 'Transfer-Encoding: chunked\r', 400],
  ['a bare line feed behind the value', 'Transfer-Encoding: chunked\nA: b', 400],
  ['behind a bare line feed', 'A: b\nTransfer-Encoding: chunked', 400],
  ['behind a bare carriage return', 'A: b\rTransfer-Encoding: chunked', 400],
  ['behind NUL', 'A: b\0Transfer-Encoding: chunked', 400],
  ['behind CR CR LF', 'A: b\r\r\nTransfer-Encoding: chunked', 400],
  ['behind LF CR', 'A: b\n\rTransfer-Encoding: chunked', 400],
  ['folded', 'Transfer-Encoding:\r\n chunked', 400],
  ['folded by a tab', 'Transfer-Encoding:\r\n\tchunked', 400],
  ['folded by a bare line feed', 'Transfer-Encoding:\n chunked', 400],
  ['folded within the word', 'Transfer-Encoding: chu\r\n nked', 400],
  ['folded on behind the word', 'Transfer-Encoding: chunked\r\n , identity', 400],
  ['part of a folded line', 'A: b\r\n Transfer-Encoding: chunked', 400],
  ['a line end before the colon', 'Transfer-Encoding\r\n: chunked', 400],
  ['a line end in the name', 'Transfer-\r\nEncoding: chunked', 400],
  ['a blank in the name', 'Transfer Encoding: chunked', 400],
  ['no colon', 'Transfer-Encoding chunked', 400],
  ['an equals sign', 'Transfer-Encoding= chunked', 400],
  ['two colons', 'Transfer-Encoding:: chunked', 400],
  ['in quotes', 'Transfer-Encoding: "chunked"', 400],
  ['in single quotes', "Transfer-Encoding: 'chunked'", 400],
  ['in brackets', 'Transfer-Encoding: (chunked)', 400],
  ['a prefix', 'Transfer-Encoding: xchunked', 400],
  ['a suffix', 'Transfer-Encoding: chunkedx', 400],
  ['cut short', 'Transfer-Encoding: chunke', 400],
  ['a parameter', 'Transfer-Encoding: chunked;q=1', 400],
  ['a semicolon', 'Transfer-Encoding: chunked;', 400],
  ['a comma behind', 'Transfer-Encoding: chunked,', 400],
  ['a comma before', 'Transfer-Encoding: ,chunked', 400],
  ['twice in a list', 'Transfer-Encoding: chunked, chunked', 400],
  ['twice', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', 400],
  ['twice, in two spellings', 'Transfer-Encoding: chunked\r\ntransfer-encoding: CHUNKED', 400],
  ['behind identity', 'Transfer-Encoding: identity, chunked', 400],
  ['before identity', 'Transfer-Encoding: chunked, identity', 400],
  ['identity in a line behind', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity', 400],
  ['identity in a line before', 'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked', 400],
  ['an unknown coding in a line behind', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: cow', 400],
  ['an unknown coding in a line before', 'Transfer-Encoding: cow\r\nTransfer-Encoding: chunked', 400],
  ['behind gzip', 'Transfer-Encoding: gzip, chunked', 400],
  ['gzip', 'Transfer-Encoding: gzip', 400],
  ['identity', 'Transfer-Encoding: identity', 400],
  ['nothing', 'Transfer-Encoding:', 400],
  ['nothing, and a line with it', 'Transfer-Encoding:\r\nTransfer-Encoding: chunked', 400],
  ['an underscore', 'Transfer_Encoding: chunked', null],
  ['no hyphen', 'TransferEncoding: chunked', null],
  ['a name before it', 'X-Transfer-Encoding: chunked', null],
  ['a name behind it', 'Transfer-Encoding-X: chunked', null],
  ['Content-Encoding', 'Content-Encoding: chunked', null],
  ['TE', 'TE: chunked', null],
  ['in the value of another', 'A: Transfer-Encoding: chunked', null],
]

const TE_TE: readonly Row[] = CODINGS.flatMap(([name, lines, status]) => {
  const [beside, before, alone] = [
    post(`${LENGTH}${lines}\r\n`, EARLY_END),
    post(`${lines}\r\n${LENGTH}`, EARLY_END),
    post(`${lines}\r\n`, HIDDEN),
  ]
  if (status !== null) {
    return [
      refused(`${name}, behind a length`, status, beside),
      refused(`${name}, before a length`, status, before),
      refused(`${name}, alone`, status, alone),
    ]
  }
  return [
    served(`${name}, behind a length`, beside, postSeen(EARLY_END)),
    served(`${name}, before a length`, before, postSeen(EARLY_END)),
    // Without framing it has no body, and the rest is not a request.
    refused(`${name}, alone`, 501, alone, postSeen()),
  ]
})

const CODED: readonly Row[] = [
  refused('a tab behind it', 400, post('Transfer-Encoding: chunked\t\r\n', HIDDEN), begun(postSeen())),
  refused('a tab behind it, and a length', 400, post(`Transfer-Encoding: chunked\t\r\n${LENGTH}`, EARLY_END)),
  refused('a length, and a tab behind it', 400, post(`${LENGTH}Transfer-Encoding: chunked\t\r\n`, EARLY_END)),
  served('chunked', post(CODING, HIDDEN), postSeen(INNER, 'chunked')),
  served('in upper case', post('TRANSFER-ENCODING: CHUNKED\r\n', HIDDEN), postSeen(INNER, 'chunked')),
  served('no blank', post('Transfer-Encoding:chunked\r\n', HIDDEN), postSeen(INNER, 'chunked')),
  served('a tab for a blank', post('Transfer-Encoding:\tchunked\r\n', HIDDEN), postSeen(INNER, 'chunked')),
  served('blanks', post('Transfer-Encoding:   chunked\r\n', HIDDEN), postSeen(INNER, 'chunked')),
  served('a GET with chunks', get(CODING) + HIDDEN, seen(`GET /${MARK}`, INNER, { framing: 'chunked' })),
  served('and another request', post(CODING, HIDDEN) + NEXT, postSeen(INNER, 'chunked'), NEXT_SEEN),
  served('no bytes', `${post(CODING, '0\r\n\r\n')}${NEXT}`, postSeen('', 'chunked'), NEXT_SEEN),
]

function length(value: string): string {
  return post(`Content-Length: ${value}\r\n`, INNER)
}

const SIZE = INNER.length
const LENGTHS: readonly Row[] = [
  served('exact', length(`${SIZE}`) + NEXT, postSeen(INNER), NEXT_SEEN),
  served('leading zeros', length(`000${SIZE}`) + NEXT, postSeen(INNER), NEXT_SEEN),
  served('no blank', post(`Content-Length:${SIZE}\r\n`, INNER), postSeen(INNER)),
  served('a tab before it', length(`\t${SIZE}`), postSeen(INNER)),
  served('a blank behind it', length(`${SIZE} `), postSeen(INNER)),
  served('in another spelling', post(`cONTENT-lENGTH: ${SIZE}\r\n`, INNER), postSeen(INNER)),
  ...[
    ['two, equal', `${SIZE}\r\nContent-Length: ${SIZE}`],
    ['two, unequal', `${SIZE}\r\nContent-Length: 0`],
    ['two, unequal the other way', `0\r\nContent-Length: ${SIZE}`],
    ['two, in two spellings', `0\r\ncontent-length: ${SIZE}`],
    ['two, with another between', `0\r\nA: b\r\nContent-Length: ${SIZE}`],
    ['two, one of them empty', `\r\nContent-Length: ${SIZE}`],
    ['a list', `${SIZE}, ${SIZE}`],
    ['a list without blanks', `${SIZE},${SIZE}`],
    ['an unequal list', `0, ${SIZE}`],
    ['a comma behind it', `${SIZE},`],
    ['a comma before it', `,${SIZE}`],
    ['a plus', `+${SIZE}`],
    ['a minus', `-${SIZE}`],
    ['minus nothing', '-0'],
    ['hexadecimal', `0x${SIZE.toString(16)}`],
    ['hexadecimal digits', SIZE.toString(16).padStart(3, 'a')],
    ['octal', `0o${SIZE.toString(8)}`],
    ['an exponent', '4e1'],
    ['a fraction', `${SIZE}.0`],
    ['an underscore', `${String(SIZE)[0]}_${String(SIZE).slice(1)}`],
    ['quoted', `"${SIZE}"`],
    ['a parameter', `${SIZE};a=b`],
    ['two words', `${SIZE} ${SIZE}`],
    ['a blank within', `${String(SIZE)[0]} ${String(SIZE).slice(1)}`],
    ['empty', ''],
    ['a word', 'chunked'],
    ['NUL behind it', `${SIZE}\0`],
    ['NUL before it', `\0${SIZE}`],
    ['a vertical tab before it', `\x0b${SIZE}`],
    ['a form feed behind it', `${SIZE}\x0c`],
    ['digits of another script', '\xd9\xa4\xd9\xa2'],
    ['a blank of latin1', `\xa0${SIZE}`],
    ['folded', `\r\n ${SIZE}`],
    ['folded behind zero', `0\r\n ${SIZE}`],
    ['a bare carriage return', `${SIZE}\r`],
    ['a bare line feed and another', `0\nContent-Length: ${SIZE}`],
    ['beyond 64 bits', `${2n ** 64n + BigInt(SIZE)}`],
    ['beyond 2^53', `${2n ** 53n + BigInt(SIZE)}`],
    ['beyond any number', '9'.repeat(400)],
  ].map(([name, value]) => refused(name!, 400, length(value!))),
  cut('beyond 32 bits', 400, length(`${2 ** 32 + SIZE}`), begun(postSeen(INNER))),
  cut('one too many', 400, length(`${SIZE + 1}`), begun(postSeen(INNER))),
  refused('a blank before the colon', 400, post(`Content-Length : ${SIZE}\r\n`, INNER)),
  refused('a tab before the colon', 400, post(`Content-Length\t: ${SIZE}\r\n`, INNER)),
  refused('a blank before the name', 400, post(`A: b\r\n Content-Length: ${SIZE}\r\n`, INNER)),
  refused('NUL before the name', 400, post(`\0Content-Length: ${SIZE}\r\n`, INNER)),
  refused('behind a bare line feed', 400, post(`A: b\nContent-Length: ${SIZE}\r\n`, INNER)),
  refused('behind a bare carriage return', 400, post(`A: b\rContent-Length: ${SIZE}\r\n`, INNER)),
  served(
    'an underscore frames nothing',
    `${post(`Content_Length: ${NEXT.length}\r\n`)}${NEXT}`,
    postSeen(),
    NEXT_SEEN,
  ),
  served(
    'no hyphen frames nothing',
    `${post(`ContentLength: ${NEXT.length}\r\n`)}${NEXT}`,
    postSeen(),
    NEXT_SEEN,
  ),
]

/** One side believes in a body where the other sees none. */
const NO_BODY: readonly Row[] = [
  ...['GET', 'DELETE', 'OPTIONS', 'PUT', 'PATCH', 'PROPFIND'].map((method) =>
    served(
      `CL.0 by ${method}`,
      `${method}${get(`Content-Length: ${SIZE}\r\n`).slice(3)}${INNER}${NEXT}`,
      seen(`${method} /${MARK}`, INNER),
      NEXT_SEEN,
    ),
  ),
  served(
    'CL.0 by HEAD',
    `HEAD${get(`Content-Length: ${SIZE}\r\n`).slice(3)}${INNER}${NEXT}`,
    seen(`HEAD /${MARK}`, INNER),
    NEXT_SEEN,
  ),
  served('a POST of nothing', `${post('Content-Length: 0\r\n')}${NEXT}`, postSeen(), NEXT_SEEN),
  served('a POST without a length', `${post('')}${NEXT}`, postSeen(), NEXT_SEEN),
  served('a GET of nothing', `${get('Content-Length: 0\r\n')}${NEXT}`, GET_SEEN, NEXT_SEEN),
  served(
    'a length that Connection takes away',
    post(`Connection: Content-Length\r\nContent-Length: ${SIZE}\r\n`, INNER) + NEXT,
    postSeen(INNER),
    NEXT_SEEN,
  ),
  served(
    'a coding that Connection takes away',
    post(`Connection: keep-alive, Transfer-Encoding\r\n${CODING}`, HIDDEN) + NEXT,
    postSeen(INNER, 'chunked'),
    NEXT_SEEN,
  ),
  served(
    '0.CL: a body that begins like a request with a body',
    post(`Content-Length: ${post(`Content-Length: ${SIZE}\r\n`).length}\r\n`) +
      post(`Content-Length: ${SIZE}\r\n`) +
      NEXT,
    postSeen(post(`Content-Length: ${SIZE}\r\n`)),
    NEXT_SEEN,
  ),
  refused('bytes behind a GET', 501, `${get()}xyz\r\n\r\n`, GET_SEEN),
  refused('a body behind a GET without a length', 501, `${get()}a=b&c=d\r\n\r\n`, GET_SEEN),
]

export const FRAMING: readonly Case[] = [
  ...family('two framings', TWO_FRAMINGS),
  ...family('TE.TE', TE_TE),
  ...family('transfer codings', CODED),
  ...family('lengths', LENGTHS),
  ...family('CL.0 and 0.CL', NO_BODY),
]
