import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { withMcpHeaders } from '../../src/wire/mcp/mcp-headers.ts'
import { canBeJson, type McpReading, readMcpMessage } from '../../src/wire/mcp/mcp-message.ts'

const CALL =
  '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1,{}]}}}'
const MESSAGE = {
  kind: 'message',
  id: null,
  method: null,
  tool: null,
  resource: null,
  name: null,
  version: null,
}

test('a message says its method, and what it is for', async () => {
  for (const [body, expected] of [
    [CALL, { id: '7', method: 'tools/call', tool: 'echo', name: 'echo' }],
    [' {"method":"ping","id":"a\\"b"} \n', { id: '"a\\"b"', method: 'ping' }],
    ['{"method":"notifications/initialized"}', { method: 'notifications/initialized' }],
    ['{"id":1,"result":{"method":"tools/call","params":{"name":"x"}}}', { id: '1' }],
    [
      '{"params":{"uri":"file:///a"},"method":"resources/read"}',
      { method: 'resources/read', resource: 'file:///a', name: 'file:///a' },
    ],
    [
      '{"method":"resources/subscribe","params":{"uri":"file:///a"}}',
      { method: 'resources/subscribe', resource: 'file:///a' },
    ],
    ['{"method":"prompts/get","params":{"name":"p"}}', { method: 'prompts/get', name: 'p' }],
    ['{"method":"tasks/cancel","params":{"taskId":"t"}}', { method: 'tasks/cancel', name: 't' }],
    ['{"method":"tools/list","params":null}', { method: 'tools/list' }],
    [
      '{"m\\u0065thod":"tools\\/call","params":{"n\\u0061me":"\\u0065cho caf\\u00e9 \\ud83d\\ude00"}}',
      { method: 'tools/call', tool: 'echo café 😀', name: 'echo café 😀' },
    ],
    [
      '{"method":"tools/call","params":{"name":"café"}}',
      { method: 'tools/call', tool: 'café', name: 'café' },
    ],
    [
      '{"method":"a","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}',
      { method: 'a', version: '2026-07-28' },
    ],
    // Only members of the message and its parameters count.
    ['{"method":"a","params":{"arguments":{"name":1,"name":2,"Name":3}}}', { method: 'a' }],
  ] as const)
    assert.deepEqual(read(body), { ...MESSAGE, ...expected }, body)
})

test('a message that parsers can read in different ways is refused', async () => {
  for (const [body, why] of [
    ['{"method":"ping","method":"tools/call"}', /method is repeated/],
    ['{"method":"ping","m\\u0065thod":"tools/call"}', /method is repeated/],
    ['{"method":"ping","Method":"tools/call"}', /method is repeated, or written/],
    ['{"METHOD":"tools/call"}', /method is repeated, or written/],
    ['{"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}', /params is repeated/],
    // U+017F is a letter s to parsers that ignore case.
    ['{"method":"ping","param\u017f":{"name":"b"}}', /params is repeated, or written/],
    ['{"method":"tools/call","params":{"name":"a","name":"b"}}', /name is repeated/],
    ['{"method":"tools/call","params":{"name":"a","NAME":"b"}}', /name is repeated, or written/],
    ['{"method":"resources/read","params":{"uri":"a","ur\u0131":"b"}}', /uri is repeated, or written/],
    ['{"id":1,"id":2,"method":"ping"}', /id is repeated/],
    ['{"method":1}', /method must be a text/],
    ['{"method":null}', /method must be a text/],
    ['{"method":"tools/call","params":["a"]}', /params must be an object/],
    ['{"method":"tools/call","params":"a"}', /params must be an object/],
    ['{"method":"tools/call","params":{"name":["a"]}}', /name must be a text/],
    ['{"method":"tools/call","params":{"name":null}}', /params\.name is missing/],
    ['{"method":"tools/call"}', /params\.name is missing/],
    ['{"method":"tools/call","params":{"name":"a\\u0000b"}}', /characters that are not allowed/],
    ['{"method":"tools/call","params":{"name":"\\ud800"}}', /characters that are not allowed/],
    [Buffer.from('{"method":"tools/call","params":{"name":"a\xff"}}', 'latin1'), /characters that are not/],
    [Buffer.from('{"method":"a","meth\xffod":"b"}', 'latin1'), /not valid UTF-8/],
    [`[${CALL}]`, /batches are not supported/],
    ['[]', /batches/],
    [`{"a":${'['.repeat(200)}${']'.repeat(200)}}`, /deeper than 128 levels/],
  ] as const) {
    const found = read(body)
    assert.equal(found.kind, 'refused', String(body))
    if (found.kind === 'refused') assert.match(found.why, why, String(body))
  }
  const bad = read('{"id":"x","method":"ping","method":"b"}')
  assert.equal(bad.kind === 'refused' && bad.id, '"x"')
})

test('a body is JSON for the scanner if and only if it is for JSON.parse', { timeout: 20_000 }, async () => {
  const isRefused = (text: string) => {
    const found = read(text)
    return found.kind === 'refused' && /not valid JSON/.test(found.why)
  }
  fc.assert(
    fc.property(fc.json({ maxDepth: 5 }), (json) => !isRefused(`{"params":{"x":${json}}}`)),
    { numRuns: 300 },
  )
  const message = '{"a":[1.5e+3,-0,"\\u00e9\\n",true,false,null,{}],"method":"ping"}'
  fc.assert(
    fc.property(fc.nat(message.length), fc.constantFrom(...'{}[],:"\\0-.e+tfnux \n\t'), (at, by) => {
      const text = `${message.slice(0, at)}${by}${message.slice(at + 1)}`
      try {
        return JSON.parse(text) !== null && !isRefused(text)
      } catch {
        return read(text).kind === 'refused'
      }
    }),
    { numRuns: 3_000 },
  )
  for (let at = 1; at < CALL.length; at++) assert.equal(read(CALL.slice(0, at)).kind, 'refused', String(at))
  assert.ok(isRefused(`${CALL}x`))
  assert.ok(isRefused(`\ufeff${CALL}`))
})

test('the first bytes tell whether a body can be JSON', async () => {
  for (const [bytes, expected] of [
    ['{', true],
    [' \n[', true],
    ['\xef\xbb\xbf{', true],
    ['\x00{', true],
    ['\xff\xfe{', true],
    ['a=b', false],
    ['\x89PNG', false],
    ['\x00\x00\x00\x00\x05', false],
    ['', null],
    ['  ', null],
  ] as const)
    assert.equal(canBeJson(Buffer.from(bytes, 'latin1')), expected, JSON.stringify(bytes))
})

test('headers that contradict the message are refused', async () => {
  const call = read(CALL)
  const versioned = read(
    '{"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}',
  )
  const accented = read('{"method":"tools/call","params":{"name":"café"}}')
  for (const [reading, headers, wrong] of [
    [call, [], null],
    [call, ['Mcp-Method', 'tools/call', 'Mcp-Name', 'echo'], null],
    [call, ['mcp-method', ' tools/call\t', 'mcp-name', '=?base64?ZWNobw==?='], null],
    [call, ['Mcp-Method', 'tools/list'], 'Mcp-Method'],
    [call, ['Mcp-Method', 'Tools/Call'], 'Mcp-Method'],
    [call, ['Mcp-Method', ''], 'Mcp-Method'],
    [call, ['Mcp-Method', 'tools/call', 'Mcp-Method', 'tools/call'], 'Mcp-Method'],
    [call, ['Mcp_Method', 'tools/list', 'Mcp-Method', 'tools/call'], 'Mcp-Method'],
    [call, ['Mcp-Name', 'other'], 'Mcp-Name'],
    [call, ['Mcp-Name', '=?base64?ZWNobw=?='], 'Mcp-Name'],
    [call, ['Mcp-Name', '=?base64?ZWNobx==?='], 'Mcp-Name'],
    [call, ['Mcp-Name', '=?BASE64?ZWNobw==?='], 'Mcp-Name'],
    [accented, ['Mcp-Name', '=?base64?Y2Fmw6k=?='], null],
    [accented, ['Mcp-Name', 'caf\xc3\xa9'], null],
    [accented, ['Mcp-Name', 'caf\xe9'], 'Mcp-Name'],
    [versioned, ['MCP-Protocol-Version', '2026-07-28'], null],
    [versioned, ['MCP-Protocol-Version', '2025-11-25'], 'MCP-Protocol-Version'],
    [read('{"id":1,"result":{}}'), ['Mcp-Method', 'tools/call'], 'Mcp-Method'],
    [{ kind: 'none' }, ['Mcp-Method', 'tools/call'], 'Mcp-Method'],
    [{ kind: 'none' }, ['Mcp-Name', 'echo'], null],
  ] as const) {
    const found = withMcpHeaders(reading as McpReading, headers)
    const shown = `${JSON.stringify(reading)} ${headers}`
    if (wrong === null) assert.equal(found, reading, shown)
    else {
      const id = reading.kind === 'message' ? reading.id : null
      const why = `the header ${wrong} and the body disagree`
      assert.deepEqual(found, { kind: 'refused', status: 400, code: -32_020, why, id }, shown)
    }
  }
})

function read(body: string | Buffer): McpReading {
  return readMcpMessage(Buffer.from(body as string))
}
