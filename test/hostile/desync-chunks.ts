import {
  begun,
  type Case,
  cut,
  family,
  INNER,
  NEXT,
  NEXT_SEEN,
  post,
  postSeen,
  type Row,
  refused,
  served,
} from './desync-case.ts'

const CODING = 'Transfer-Encoding: chunked\r\n'
const HELLO = postSeen('hello', 'chunked')
const BEGUN = begun(HELLO)

function chunks(text: string): string {
  return post(CODING, text)
}

const SERVED: readonly Row[] = [
  ['one', '5\r\nhello\r\n0\r\n\r\n'],
  ['several', '1\r\nh\r\n4\r\nello\r\n0\r\n\r\n'],
  ['leading zeros', '0005\r\nhello\r\n0\r\n\r\n'],
  ['many leading zeros', `${'0'.repeat(40)}5\r\nhello\r\n0\r\n\r\n`],
  ['many zeros at the end', `5\r\nhello\r\n${'0'.repeat(40)}\r\n\r\n`],
  ['an extension', '5;a=b\r\nhello\r\n0\r\n\r\n'],
  ['an extension without a value', '5;a\r\nhello\r\n0\r\n\r\n'],
  ['several extensions', '5;a=b;c=d\r\nhello\r\n0\r\n\r\n'],
  ['a quoted extension', '5;a="b;c"\r\nhello\r\n0\r\n\r\n'],
  ['an invalid extension', '5;=\r\nhello\r\n0\r\n\r\n'],
  ['an extension at the end', '5\r\nhello\r\n0;a=b\r\n\r\n'],
  ['a host for a trailer', '5\r\nhello\r\n0\r\nHost: b\r\n\r\n'],
  ['a tag for a trailer', '5\r\nhello\r\n0\r\nX-Agent-Name: b\r\n\r\n'],
].map(([name, text]) => served(name!, chunks(text!) + NEXT, HELLO, NEXT_SEEN))

/** A size that not every reader takes for the same: what was begun is never whole. */
const SIZES: readonly Row[] = [
  ['a prefix', '0x5\r\nhello\r\n0\r\n\r\n'],
  ['a plus', '+5\r\nhello\r\n0\r\n\r\n'],
  ['a minus', '-5\r\nhello\r\n0\r\n\r\n'],
  ['a blank behind', '5 \r\nhello\r\n0\r\n\r\n'],
  ['a tab behind', '5\t\r\nhello\r\n0\r\n\r\n'],
  ['a blank before', ' 5\r\nhello\r\n0\r\n\r\n'],
  ['a vertical tab behind', '5\x0b\r\nhello\r\n0\r\n\r\n'],
  ['NUL behind', '5\0\r\nhello\r\n0\r\n\r\n'],
  ['a word', 'five\r\nhello\r\n0\r\n\r\n'],
  ['a letter behind', '5g\r\nhello\r\n0\r\n\r\n'],
  ['an underscore', '0_5\r\nhello\r\n0\r\n\r\n'],
  ['a fraction', '5.0\r\nhello\r\n0\r\n\r\n'],
  ['a list', '5,5\r\nhello\r\n0\r\n\r\n'],
  ['quoted', '"5"\r\nhello\r\n0\r\n\r\n'],
  ['none', '\r\nhello\r\n0\r\n\r\n'],
  ['none, but an extension', ';a=b\r\nhello\r\n0\r\n\r\n'],
  ['beyond 64 bits', '10000000000000005\r\nhello\r\n0\r\n\r\n'],
  ['beyond 64 bits by far', `${'f'.repeat(40)}\r\nhello\r\n0\r\n\r\n`],
].map(([name, text]) => refused(name!, 400, chunks(text!) + INNER, BEGUN))

/** Lines that end where not every reader ends them. */
const ENDS: readonly Row[] = [
  ['a bare line feed behind a size', '5\nhello\r\n0\r\n\r\n'],
  ['a bare carriage return behind a size', '5\rhello\r\n0\r\n\r\n'],
  ['CR CR LF behind a size', '5\r\r\nhello\r\n0\r\n\r\n'],
  ['LF CR LF behind a size', '5\n\r\nhello\r\n0\r\n\r\n'],
  ['TERM.EXT: a bare line feed in an extension', `5;\nhello\r\n${INNER.length.toString(16)}\r\n${INNER}`],
  ['EXT.TERM: a line feed that ends nothing', `5;a\nb\r\nhello\r\n0\r\n\r\n${INNER}`],
  ['a bare carriage return in an extension', '5;a\rb\r\nhello\r\n0\r\n\r\n'],
  ['a line feed in a quoted extension', '5;a="\n"\r\nhello\r\n0\r\n\r\n'],
  ['a line end in a quoted extension', '5;a="\r\n"\r\nhello\r\n0\r\n\r\n'],
  ['NUL in an extension', '5;a\0\r\nhello\r\n0\r\n\r\n'],
  ['an extension without a name', '5;\r\nhello\r\n0\r\n\r\n'],
  ['TERM.SPILL: a chunk that ends in a bare line feed', '5\r\nhello\n0\r\n\r\n'],
  ['a chunk that ends in a bare carriage return', '5\r\nhello\r0\r\n\r\n'],
  ['SPILL.TERM: a chunk that goes on', '5\r\nhelloxx0\r\n\r\n'],
  ['a chunk that goes on to its line end', '5\r\nhelloxx\r\n0\r\n\r\n'],
  ['a chunk that does not end', '5\r\nhello0\r\n\r\n'],
  ['a chunk that is too short', '6\r\nhello\r\n0\r\n\r\n'],
  ['two bytes for any line end', '5\r\nhelloXX0\r\n\r\n'],
  ['an empty line before the size', '\r\n5\r\nhello\r\n0\r\n\r\n'],
  ['an empty line before the last size', '5\r\nhello\r\n\r\n0\r\n\r\n'],
  ['a bare line feed behind the last size', `5\r\nhello\r\n0\n\r\n${INNER}`],
  ['a bare line feed at the end', `5\r\nhello\r\n0\r\n\n${INNER}`],
  ['two bare line feeds at the end', `5\r\nhello\r\n0\n\n${INNER}`],
  ['a bare carriage return at the end', `5\r\nhello\r\n0\r\n\r${INNER}`],
  ['a letter behind the last size', `5\r\nhello\r\n0\r\nX\r\n\r\n${INNER}`],
  ['no end, but a request', `5\r\nhello\r\n0\r\n${INNER}`],
].map(([name, text]) => refused(name!, 400, chunks(text!), BEGUN))

const TRAILERS: readonly Row[] = [
  served('a trailer', chunks('5\r\nhello\r\n0\r\nA: b\r\n\r\n') + NEXT, HELLO, NEXT_SEEN),
  ...[
    ['a blank before the colon', 'A : b\r\n'],
    ['a blank in the name', 'A b: c\r\n'],
    ['no colon', 'A\r\n'],
    ['an empty name', ': b\r\n'],
    ['folded', 'A: b\r\n c\r\n'],
    ['a folded first line', ' A: b\r\n'],
    ['a bare line feed', 'A: b\nC: d\r\n'],
    ['a bare carriage return', 'A: b\rC: d\r\n'],
    ['NUL', 'A: b\0\r\n'],
    ['a name beyond ASCII', 'A\xff: b\r\n'],
    ['a length', 'Content-Length: 9\r\n'],
    ['another coding', 'Transfer-Encoding: chunked\r\n'],
  ].map(([name, text]) =>
    refused(`${name} in a trailer`, 400, chunks(`5\r\nhello\r\n0\r\n${text}\r\n`) + INNER, BEGUN),
  ),
]

const CUT: readonly Row[] = [
  cut('a body without an end', 400, chunks('5\r\nhello\r\n'), BEGUN),
  cut('a chunk that breaks off', 400, chunks('5\r\nhel'), BEGUN),
  cut('a size that breaks off', 400, chunks('5'), BEGUN),
  cut('trailers that break off', 400, chunks('5\r\nhello\r\n0\r\nA: b\r\n'), BEGUN),
  cut('a last line that breaks off', 400, chunks('5\r\nhello\r\n0\r\n'), BEGUN),
  cut('a chunk beyond 32 bits', 400, chunks(`100000005\r\nhello\r\n0\r\n\r\n${INNER}`), BEGUN),
  refused('extensions without end', 413, chunks(`5;${'a'.repeat(20_000)}\r\nhello\r\n0\r\n\r\n`), BEGUN),
]

export const CHUNKS: readonly Case[] = [
  ...family('chunks', SERVED),
  ...family('chunk sizes', SIZES),
  ...family('chunk line ends', ENDS),
  ...family('trailers', TRAILERS),
  ...family('chunks that break off', CUT),
]
