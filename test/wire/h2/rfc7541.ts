import type { Field } from './hpack-model.ts'

export interface Example {
  readonly section: string
  /** Header blocks of one connection, each with the list it stands for. */
  readonly blocks: readonly (readonly [hex: string, list: readonly Field[]])[]
  /** The dynamic table in the end, newest first. */
  readonly table: readonly Field[]
}

const request1: readonly Field[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':path', '/'],
  [':authority', 'www.example.com'],
]
const request2: readonly Field[] = [...request1, ['cache-control', 'no-cache']]
const request3: readonly Field[] = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/index.html'],
  [':authority', 'www.example.com'],
  ['custom-key', 'custom-value'],
]
const requestTable: readonly Field[] = [
  ['custom-key', 'custom-value'],
  ['cache-control', 'no-cache'],
  [':authority', 'www.example.com'],
]

const response1: readonly Field[] = [
  [':status', '302'],
  ['cache-control', 'private'],
  ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
  ['location', 'https://www.example.com'],
]
const response2: readonly Field[] = [[':status', '307'], ...response1.slice(1)]
const response3: readonly Field[] = [
  [':status', '200'],
  ['cache-control', 'private'],
  ['date', 'Mon, 21 Oct 2013 20:13:22 GMT'],
  ['location', 'https://www.example.com'],
  ['content-encoding', 'gzip'],
  ['set-cookie', 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'],
]
const responseTable: readonly Field[] = [response3[5]!, response3[4]!, response3[2]!]

/** The examples of C.5 and C.6 have a table of 256 bytes by SETTINGS: said here as an encoder has to say it. */
const TABLE_OF_256 = ['3fe101', []] as const

// RFC 7541, Appendix C.
export const EXAMPLES: readonly Example[] = [
  {
    section: 'C.2.1',
    blocks: [['400a637573746f6d2d6b65790d637573746f6d2d686561646572', [['custom-key', 'custom-header']]]],
    table: [['custom-key', 'custom-header']],
  },
  { section: 'C.2.2', blocks: [['040c2f73616d706c652f70617468', [[':path', '/sample/path']]]], table: [] },
  { section: 'C.2.3', blocks: [['100870617373776f726406736563726574', [['password', 'secret']]]], table: [] },
  { section: 'C.2.4', blocks: [['82', [[':method', 'GET']]]], table: [] },
  {
    section: 'C.3',
    blocks: [
      ['828684410f7777772e6578616d706c652e636f6d', request1],
      ['828684be58086e6f2d6361636865', request2],
      ['828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565', request3],
    ],
    table: requestTable,
  },
  {
    section: 'C.4',
    blocks: [
      ['828684418cf1e3c2e5f23a6ba0ab90f4ff', request1],
      ['828684be5886a8eb10649cbf', request2],
      ['828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf', request3],
    ],
    table: requestTable,
  },
  {
    section: 'C.5',
    blocks: [
      TABLE_OF_256,
      [
        `4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768
         747470733a2f2f7777772e6578616d706c652e636f6d`,
        response1,
      ],
      ['4803333037c1c0bf', response2],
      [
        `88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153
         444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e
         3d31`,
        response3,
      ],
    ],
    table: responseTable,
  },
  {
    section: 'C.6',
    blocks: [
      TABLE_OF_256,
      [
        `488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8
         e9ae82ae43d3`,
        response1,
      ],
      ['4883640effc1c0bf', response2],
      [
        `88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b
         3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007`,
        response3,
      ],
    ],
    table: responseTable,
  },
]
