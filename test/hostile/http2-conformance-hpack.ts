import { data, fieldBlock, frame } from '../proxy/http2-frames.ts'
import {
  END_HEADERS,
  END_STREAM,
  ended,
  get,
  hold,
  malformed,
  more,
  node,
  open,
  post,
  rst,
  served,
  type Table,
} from './http2-conformance-case.ts'
import { COMPRESSION_ERROR, HEADERS } from './http2-peer.ts'

/** A GET of these bytes behind the method, scheme and path of the static table (RFC 7541, Appendix A). */
const packed = (hex: string, stream = 1) =>
  frame(HEADERS, END_STREAM | END_HEADERS, stream, Buffer.from(`828784${hex}`, 'hex'))
/** A literal with indexing whose name is that of the first entry: `a`. */
const authority = '410161'
/** The same as the newest entry of the dynamic table. */
const again = 'be'
/** The same without indexing. */
const unindexed = '010161'
/** `abc: x` behind the byte that says how it is indexed. */
const newName = '036162630178'
const newHuffmanName = '8825a849e95ba97d7f8925a849e95bb8e8b4bf'
/** With a change of the table's size in front. */
const sized = (hex: string, rest: string, stream = 1) =>
  frame(HEADERS, END_STREAM | END_HEADERS, stream, Buffer.from(`${hex}828784${rest}`, 'hex'))
/** `b: 70,000 bytes`, behind a field that goes into the table. */
const large = Buffer.concat([Buffer.from(`828784${authority}`, 'hex'), fieldBlock(['b', 'c'.repeat(70_000)])])
const largeEntry = (size: number) =>
  Buffer.concat([Buffer.from('82878401016140', 'hex'), fieldBlock(['a', 'b'.repeat(size)]).subarray(1)])

/** RFC 7541. */
export const HPACK_RULES: Table = {
  'RFC 7541 §2.3.3': [
    ['an index beyond the tables', [packed('c6')], ended(COMPRESSION_ERROR)],
    ['the first index behind an empty table', [packed(again)], ended(COMPRESSION_ERROR)],
    ['the first index behind a table of one entry', [packed(`${authority}bf`)], ended(COMPRESSION_ERROR)],
    ['a literal whose name has such an index', [packed('7f0f0161')], ended(COMPRESSION_ERROR)],
    [
      'a literal without indexing whose name has such an index',
      [packed('0f3f0161')],
      ended(COMPRESSION_ERROR),
    ],
  ],
  'RFC 7541 §2.3.2': [
    [
      'an entry of a request that is malformed',
      [packed(`${authority}0001580161`), packed(again, 3)],
      served(3),
    ],
    [
      'an entry of a request that is refused',
      [hold(1), hold(3), hold(5), hold(7), packed(authority, 9), rst(1), packed(again, 11)],
      served(11),
    ],
    [
      'an entry of a request whose fields are too large',
      [
        open(1, large.subarray(0, 16_000)),
        more(1, large.subarray(16_000, 32_000), false),
        more(1, large.subarray(32_000, 48_000), false),
        more(1, large.subarray(48_000, 64_000), false),
        more(1, large.subarray(64_000)),
        packed(again, 3),
      ],
      served(3),
      node('nghttp2 ends the connection', ended()),
    ],
    [
      'an entry of trailers',
      [
        post(1),
        data(1, 'x', false),
        frame(HEADERS, 5, 1, Buffer.from('4001610162', 'hex')),
        packed(`${unindexed}${again}`, 3),
      ],
      served(1, 3),
    ],
    [
      'an entry of trailers behind our own reset',
      [
        post(1, 'X-Up', 'a'),
        frame(HEADERS, 5, 1, Buffer.from('4001610162', 'hex')),
        packed(`${unindexed}${again}`, 3),
      ],
      served(3),
    ],
    [
      'an entry of trailers that are malformed',
      [
        post(1),
        frame(HEADERS, 5, 1, Buffer.from('40016101620001580161', 'hex')),
        packed(`${unindexed}${again}`, 3),
      ],
      served(3),
    ],
    [
      'an entry of a request that was answered',
      [packed(authority), 1, packed(again, 3), 3, packed(again, 5)],
      served(1, 3, 5),
    ],
    ['an entry twice in the same block', [packed(`${unindexed}40${newName}be${again}`)], served(1)],
  ],
  'RFC 7541 §4.2': [
    ['a change of the size at the end of a block', [packed(`${authority}20`)], ended(COMPRESSION_ERROR)],
    ['a change of the size in the middle of a block', [packed(`20${authority}`)], ended(COMPRESSION_ERROR)],
    [
      'nothing but a change of the size in trailers',
      [post(1), frame(HEADERS, 5, 1, Buffer.of(0x20))],
      served(1),
    ],
  ],
  'RFC 7541 §4.4': [
    [
      'an entry that is larger than the table empties it',
      [packed(authority), frame(HEADERS, 5, 3, largeEntry(5000)), packed(again, 5)],
      ended(COMPRESSION_ERROR),
    ],
    [
      'an entry that just fits',
      [frame(HEADERS, 5, 1, largeEntry(4096 - 33)), packed(`${unindexed}${again}`, 3)],
      served(1, 3),
    ],
    [
      'an entry that is one byte too large',
      [frame(HEADERS, 5, 1, largeEntry(4096 - 32)), packed(`${unindexed}${again}`, 3)],
      ended(COMPRESSION_ERROR),
    ],
    [
      'an entry that evicts the entry that its own name is of',
      [frame(HEADERS, 5, 1, largeEntry(4000)), packed(`${unindexed}7e0178${again}`, 3)],
      served(1, 3),
    ],
  ],
  'RFC 7541 §5.1': [
    ['an integer without an end', [packed(`7f${'ff'.repeat(20)}`)], ended(COMPRESSION_ERROR)],
    ['an integer above 2^32', [packed('7fffffffffff7f0161')], ended(COMPRESSION_ERROR)],
    ['an integer that is cut short', [packed('7f80')], ended(COMPRESSION_ERROR)],
    ['a length of 127', [get(1, 'x', 'y'.repeat(127))], served(1)],
    ['a length of 128', [get(1, 'x', 'y'.repeat(128))], served(1)],
    ['a length of 254 and of 255', [get(1, 'x', 'y'.repeat(254), 'z', 'y'.repeat(255))], served(1)],
  ],
  'RFC 7541 §5.2': [
    ['padding of more than 7 bits', [packed('41821fff')], ended(COMPRESSION_ERROR)],
    ['padding with zeros', [packed('418118')], ended(COMPRESSION_ERROR)],
    ['the symbol of the end', [packed('4184ffffffff')], ended(COMPRESSION_ERROR)],
    ['the symbol of the end behind others', [packed('41851fffffffff')], ended(COMPRESSION_ERROR)],
    ['nothing but padding', [packed('4181ff')], ended(COMPRESSION_ERROR)],
    ['a string longer than the block', [packed('417f8001')], ended(COMPRESSION_ERROR)],
    ['a string that is longer by one byte', [packed('410261')], ended(COMPRESSION_ERROR)],
    ['a name without a value', [packed(`${authority}400161`)], ended(COMPRESSION_ERROR)],
    ['an empty string with Huffman coding', [packed(`${authority}00016180`)], served(1)],
    [
      'a line feed with Huffman coding',
      [get(1), 1, packed(`${unindexed}00016184fffffff3`, 3)],
      malformed(3),
      node('It is left out behind the first request', served(1, 3)),
    ],
  ],
  'RFC 7541 §6': [
    ['index 0', [packed('80')], ended(COMPRESSION_ERROR)],
    ['fields that are indexed', [packed(authority)], served(1)],
    ['a literal with indexing, its name indexed', [packed(authority), packed(again, 3)], served(1, 3)],
    ['the same with Huffman coding', [packed('418cf1e3c2e5f23a6ba0ab90f4ff')], served(1)],
    ['a literal with indexing and a new name', [packed(`${authority}40${newName}`)], served(1)],
    ['the same with Huffman coding', [packed(`${authority}40${newHuffmanName}`)], served(1)],
    ['a literal without indexing, its name indexed', [packed(unindexed)], served(1)],
    ['the same with Huffman coding', [packed('018cf1e3c2e5f23a6ba0ab90f4ff')], served(1)],
    ['a literal without indexing and a new name', [packed(`${authority}00${newName}`)], served(1)],
    ['the same with Huffman coding', [packed(`${authority}00${newHuffmanName}`)], served(1)],
    ['a literal never to be indexed, its name indexed', [packed('110161')], served(1)],
    ['the same with Huffman coding', [packed('118cf1e3c2e5f23a6ba0ab90f4ff')], served(1)],
    ['a literal never to be indexed and a new name', [packed(`${authority}10${newName}`)], served(1)],
    ['the same with Huffman coding', [packed(`${authority}10${newHuffmanName}`)], served(1)],
    [
      'a literal without indexing goes into no table',
      [packed(unindexed), packed(again, 3)],
      ended(COMPRESSION_ERROR),
    ],
    [
      'a literal never to be indexed goes into no table',
      [packed('110161'), packed(again, 3)],
      ended(COMPRESSION_ERROR),
    ],
  ],
  'RFC 7541 §6.3': [
    ['a change of the size', [sized('30', authority)], served(1)],
    ['two of them', [sized('203fe11f', authority)], served(1)],
    ['a size of 4096', [sized('3fe11f', authority)], served(1)],
    ['a size of 4097', [sized('3fe21f', authority)], ended(COMPRESSION_ERROR)],
    ['a size above what was allowed', [sized('3fffffff7f', authority)], ended(COMPRESSION_ERROR)],
    ['a table of no bytes holds no entry', [sized('20', `${authority}be`)], ended(COMPRESSION_ERROR)],
    ['an entry that was evicted', [packed(authority), sized('20', again, 3)], ended(COMPRESSION_ERROR)],
    [
      'an entry that a table made smaller and larger has lost',
      [packed(authority), sized('203fe11f', again, 3)],
      ended(COMPRESSION_ERROR),
    ],
    ['an entry that a smaller table still holds', [packed(authority), sized('3f1f', again, 3)], served(1, 3)],
  ],
}
