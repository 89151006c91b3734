import assert from 'node:assert/strict'
import { test } from 'tap'
import { classify } from '../../src/classify/verdict/classify.ts'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import type { Verdict } from '../../src/classify/verdict/verdict.ts'
import type { ConnectionPrint } from '../../src/fingerprint/print.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'

const KNOWLEDGE = await loadKnowledge(null, null)
const NODE: readonly string[] = [
  ...['accept', 'application/json', 'accept-language', '*'],
  ...['sec-fetch-mode', 'cors', 'user-agent', 'node', 'accept-encoding', 'br, gzip, deflate'],
]
const TOKEN: readonly string[] = ['authorization', 'Bearer <redacted>', ...NODE]
const FORM: readonly string[] = [
  ...['authorization', 'Basic <redacted>', 'content-type', 'application/x-www-form-urlencoded', ...NODE],
]
const MCP: readonly string[] = [
  ...['accept', 'application/json, text/event-stream', 'content-type', 'application/json'],
  ...['authorization', 'Bearer <redacted>', 'user-agent', 'node'],
]
const CHROMIUM: readonly string[] = [
  'user-agent',
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36',
  ...['accept', '*/*', 'sec-fetch-mode', 'cors', 'sec-fetch-site', 'same-origin', 'sec-fetch-dest', 'empty'],
]
const PRINT: ConnectionPrint = {
  ...{ ja4: null, unresumed: null, stable: null, traits: null, ja4s: null, ja4x: null, http2: null },
  ...{ pageWeight: null, noHello: null, ja4Source: 'own' },
}

type Sent = readonly [method: string, target: string, headers: readonly string[]]

const RESOURCE = '/.well-known/oauth-protected-resource'
const SERVER = '/.well-known/oauth-authorization-server'
const OPENID = '/.well-known/openid-configuration'

const SEEN: readonly (readonly [target: string, isSeen: boolean])[] = [
  [`${RESOURCE}/mcp`, true],
  [`${RESOURCE}/secure/mcp?x=1`, true],
  [`${RESOURCE}s/mcp`, false],
  // Libraries for OAuth ask for this, for any API.
  [RESOURCE, false],
  [`${RESOURCE}?x=/mcp`, false],
  [`${RESOURCE}/orders`, false],
  // All programs that sign in with OAuth or OpenID ask for these.
  [SERVER, false],
  [`${SERVER}/tenant`, false],
  [OPENID, false],
  [`/tenant${OPENID}`, false],
  [`${SERVER}/mcp`, true],
  [`${OPENID}/tenant/mcp?x=1`, true],
  [`${OPENID}/mcpx`, false],
  ['/.well-known/openid-federation', false],
]

for (const [target, isSeen] of SEEN) {
  test(`${target} ${isSeen ? 'is' : 'is not'} the discovery of an MCP client`, async () => {
    assert.equal(saysDiscovery(judged(['GET', target, NODE])), isSeen)
    assert.equal(saysDiscovery(judged(['POST', target, NODE])), false)
    assert.equal(saysDiscovery(judged(['GET', target, CHROMIUM])), false)
  })
}

test('a client that looks for the authorization server of an MCP server is an agent', async () => {
  const begun = judged(['GET', `${RESOURCE}/mcp`, NODE], ['GET', SERVER, NODE])
  assert.equal(begun.kind, 'agent')
  const registered = judged(
    ['GET', `${RESOURCE}/mcp`, NODE],
    ['POST', '/register', ['content-type', 'application/json', ...NODE]],
    ['POST', '/token', FORM],
  )
  assert.ok(saysDiscovery(registered))
  const connected = judged(['GET', `${RESOURCE}/mcp`, NODE], ['POST', '/token', FORM], ['POST', '/mcp', MCP])
  assert.equal(connected.kind, 'agent')
  assert.ok(connected.confidence > 0.98, `${connected.confidence}`)
})

test('it is not, if its token is for another API', async () => {
  const other = judged(
    ['GET', `${RESOURCE}/mcp`, NODE],
    ['POST', '/token', FORM],
    ['GET', '/api/items', TOKEN],
  )
  assert.equal(other.kind, 'automation')
  assert.equal(saysDiscovery(other), false)
  const after = judged(['GET', `${RESOURCE}/mcp`, NODE], ['POST', '/mcp', MCP], ['GET', '/api/items', TOKEN])
  assert.ok(saysDiscovery(after), 'it has shown that it is an MCP client')
})

test('an event stream is that of an MCP client at the paths of MCP, and by what is sent to it', async () => {
  const stream = ['accept', 'text/event-stream', 'user-agent', 'node', 'sec-fetch-mode', 'cors']
  const json = ['content-type', 'application/json', 'user-agent', 'node', 'sec-fetch-mode', 'cors']
  for (const path of ['/mcp', '/sse', '/sse?x=1'])
    assert.equal(judged(['GET', path, stream]).kind, 'agent', path)
  for (const path of ['/events', '/sse/orders', '/stream?x=/sse'])
    assert.equal(judged(['GET', path, stream]).kind, 'automation', path)
  for (const path of ['/messages/?session_id=1', '/api/message?sessionId=1&x=2']) {
    assert.equal(judged(['GET', '/events', stream], ['POST', path, json]).kind, 'agent', path)
    assert.equal(judged(['POST', path, json]).kind, 'agent', path)
    assert.equal(judged(['POST', path, FORM]).kind, 'automation', path)
    const browser = ['content-type', 'application/json', ...CHROMIUM.slice(0, 2)]
    assert.ok(!saysMcp(judged(['POST', path, browser])), path)
  }
  for (const path of ['/messages?id=1', '/messages', '/messagesx?sessionId=1', '/x?y=/messages?sessionId=1'])
    assert.equal(judged(['POST', path, json]).kind, 'automation', path)
})

/** After the last of these requests on one connection. */
function judged(...sent: readonly Sent[]): Verdict {
  const conduct = new Conduct()
  let verdict: Verdict | null = null
  for (const [method, target, headers] of sent) {
    const head = { method, target, version: '11' as const, rawHeaders: [...headers] }
    verdict = classify(KNOWLEDGE, { print: { connection: PRINT, ja4h: null }, head, conduct })
  }
  return verdict!
}

function saysMcp({ evidence }: Verdict): boolean {
  return evidence.some(({ kind }) => kind === 'mcp-request')
}

function saysDiscovery({ evidence }: Verdict): boolean {
  return evidence.some(({ kind }) => kind === 'oauth-discovery')
}
