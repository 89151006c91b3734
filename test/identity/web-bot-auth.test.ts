import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { test } from 'tap'
import { verifySignature } from '../../src/identity/verify/http-signature.ts'
import { readSignatureKey } from '../../src/identity/signature/signature-key.ts'
import { readBotSignature, readBotSignatures } from '../../src/identity/verify/web-bot-auth.ts'
import { newSigner, rawHeadersOf, signed, type Wanted } from './signer.ts'

const RULES = { allowPrivate: false }
const NOW_S = 1_735_689_600
const AGENT = 'https://agent.example'
const DOCUMENT = 'https://agent.example/identity.json'
const signer = newSigner('ed25519')
const { thumbprint } = signer.key

interface Asked extends Partial<Wanted> {
  readonly agent?: string | null
  readonly host?: string
}

/** As a client signs it that knows the newest draft. */
async function read({ agent = `sig1="${AGENT}"`, host = 'gate.example', ...wanted }: Asked = {}) {
  const headers = { host, ...(agent !== null && { 'Signature-Agent': agent }) }
  const request = { method: 'GET', url: `https://${host}/v1/agents?q=1`, headers }
  const fields = ['@authority', ...(agent === null ? [] : ['signature-agent;key="sig1"'])]
  const all = { fields, tag: 'web-bot-auth', createdS: NOW_S, expiresS: NOW_S + 60, nonce: 'n', ...wanted }
  const rawHeaders = rawHeadersOf(await signed(signer, request, all))
  const seen = { method: 'GET', base: 'https://gate.example', target: '/v1/agents?q=1', rawHeaders }
  return readBotSignature(seen, RULES, NOW_S * 1000)
}

test('the claimed signer, in every form of the drafts', async () => {
  for (const [agent, fields, id] of [
    [`sig1="${AGENT}"`, ['@authority', 'signature-agent;key="sig1"'], AGENT],
    [`other="https://x.example/", sig1="${AGENT}"`, ['@authority', 'signature-agent;key="sig1"'], AGENT],
    [`agent2="${AGENT}"`, ['@target-uri', 'signature-agent;key="agent2"', '@method'], AGENT],
    ['sig1="https://agent.example";type=directory', ['@authority', 'signature-agent;key="sig1"'], AGENT],
    [`sig1="${DOCUMENT}";type=jwks_uri`, ['@authority', 'signature-agent;key="sig1"'], DOCUMENT],
    [`sig1="${DOCUMENT}";type=cimd;x=1`, ['@authority', 'signature-agent;key="sig1"'], DOCUMENT],
    [`sig2="https://x.example", sig1="${AGENT}"`, ['@authority', 'signature-agent'], AGENT],
    [
      `sig2="https://x.example", sig1="${AGENT}"`,
      ['@authority', 'signature-agent;key="sig2"', 'signature-agent;key="sig1"'],
      AGENT,
    ],
    [`sig1="${AGENT}"`, ['@authority', 'signature-agent'], AGENT],
    [`"${AGENT}"`, ['@authority', 'signature-agent'], AGENT],
    ['"https://agent.example/"', ['@authority', 'signature-agent'], 'https://agent.example'],
  ] as const) {
    const found = await read({ agent, fields })
    assert.ok(found.kind === 'signature', JSON.stringify(found))
    assert.deepEqual(
      [found.agentId, found.thumbprint, verifySignature(found.signature, signer.key)],
      [id, thumbprint, null],
    )
  }
})

test('what is refused before a key is fetched', async () => {
  const member = 'signature-agent;key="sig1"'
  const cases: readonly (readonly [fault: string, asked: Asked])[] = [
    ['other-tag', { tag: 'gnap' }],
    ['other-tag', { tag: null }],
    ['no-expires', { expiresS: undefined as never }],
    ['expired', { createdS: NOW_S - 200, expiresS: NOW_S - 100 }],
    ['lives-too-long', { expiresS: NOW_S + 86_401 }],
    ['created-in-future', { createdS: NOW_S + 100, expiresS: NOW_S + 200 }],
    ['not-covered', { fields: [member] }],
    ['not-covered', { fields: ['@method', '@path', member] }],
    ['no-agent', { fields: ['@authority'] }],
    ['no-agent', { agent: null }],
    [
      'no-agent',
      { agent: `sig2="${AGENT}", sig3="https://x.example/"`, fields: ['@authority', 'signature-agent'] },
    ],
    [
      'no-agent',
      {
        agent: `sig2="${AGENT}", sig3="https://x.example/"`,
        fields: ['@authority', 'signature-agent;key="sig2"', 'signature-agent;key="sig3"'],
      },
    ],
    ['ignored-agent', { agent: `sig1="${DOCUMENT}"` }],
    ['ignored-agent', { agent: `sig1="${DOCUMENT}";type=directory` }],
    ['ignored-agent', { agent: `sig1="${AGENT}";type=did` }],
    ['ignored-agent', { agent: `sig1="${AGENT}";type="directory"` }],
    ['ignored-agent', { agent: `sig1="${AGENT}";type` }],
    ['ignored-agent', { agent: `sig1="${AGENT}";type=cimd` }],
    ['payment-tag', { tag: 'agent-browser-auth' }],
    ['payment-tag', { tag: 'agent-payer-auth', agent: null }],
    ['no-agent', { agent: 'sig1=token', fields: ['@authority', 'signature-agent'] }],
    ['no-agent', { agent: 'sig1=(1 2)', fields: ['@authority', 'signature-agent'] }],
    ['no-agent', { agent: 'sig1', fields: ['@authority', 'signature-agent'] }],
    [
      'no-agent',
      { agent: `sig1="https://x.example/${'x'.repeat(5_000)}"`, fields: ['@authority', 'signature-agent'] },
    ],
    ['other-agent', { agent: 'sig1="http://agent.example/"' }],
    ['other-agent', { agent: 'sig1="data:application/json,{}"' }],
    ['other-agent', { agent: 'sig1="https://user@agent.example/"' }],
    ['other-agent', { agent: 'sig1="https://Agent.example"' }],
    ['other-agent', { agent: 'sig1="agent"' }],
    ['no-thumbprint', { keyId: null }],
    ['no-thumbprint', { keyId: 'my-key' }],
    ['no-thumbprint', { keyId: `${thumbprint}=` }],
  ]
  for (const [fault, asked] of cases)
    assert.deepEqual(await read(asked), { kind: 'refused', fault }, JSON.stringify(asked))
})

test('of another host the signature is not of this request', async () => {
  const found = await read({ host: 'other.example' })
  assert.ok(found.kind === 'signature')
  assert.equal(verifySignature(found.signature, signer.key), 'wrong')
})

test('two signatures are read by themselves, each with the agent of its label', async () => {
  const headers = { 'Signature-Agent': `sig1="${AGENT}", sig2="https://other.example/"` }
  const request = { method: 'GET', url: 'https://gate.example/', headers }
  const more = { tag: 'web-bot-auth', createdS: NOW_S, expiresS: NOW_S + 60 }
  const once = await signed(signer, request, {
    ...more,
    fields: ['@authority', 'signature-agent;key="sig1"'],
  })
  const other = newSigner('ed25519')
  const twice = await signed(
    other,
    { ...request, headers: once },
    { ...more, fields: ['@authority', 'signature-agent;key="sig2"'], label: 'sig2' },
  )
  const seen = { method: 'GET', base: 'https://gate.example', target: '/', rawHeaders: rawHeadersOf(twice) }
  const found = readBotSignatures(seen, RULES, NOW_S * 1000).map((each) =>
    each.kind === 'signature' ? [each.agentId, each.thumbprint] : [each.fault],
  )
  assert.deepEqual(found, [
    [AGENT, thumbprint],
    ['https://other.example', other.key.thumbprint],
  ])
  assert.deepEqual(readBotSignature(seen, RULES, NOW_S * 1000), { kind: 'refused', fault: 'several' })
})

test('the vectors of draft-ietf-webbotauth-httpsig-protocol, appendix E', async () => {
  const { signatures, keys } = JSON.parse(readFileSync('test/vectors/http-signatures.json', 'utf8')) as {
    signatures: {
      name: string
      key: string
      now: number
      tag?: string
      request: { headers: [string, string][]; method: string; base: string; target: string }
    }[]
    keys: Record<string, unknown>
  }
  const found = signatures.flatMap(({ name, key, tag, request: { headers, ...request } }) => {
    const rawHeaders = headers.flat()
    if (tag !== 'web-bot-auth' || !rawHeaders.some((header) => /^signature-agent$/i.test(header))) return []
    const read = readBotSignature({ ...request, rawHeaders }, RULES, NOW_S * 1000)
    if (read.kind === 'refused') return [`${name}: ${read.fault}`]
    const signatureKey = readSignatureKey(keys[key], true)
    assert.ok(signatureKey.kind === 'key')
    assert.deepEqual(
      [read.thumbprint, verifySignature(read.signature, signatureKey.key)],
      [signatureKey.key.thumbprint, null],
      name,
    )
    return [`${name}: ${read.agentId}`]
  })
  // The first of each kind is good for a hundred years.
  const included = 'Web Bot Auth: Signature-Agent Included Present on the Request'
  const legacy = 'Web Bot Auth: Legacy Signature-Agent, sf-string'
  assert.deepEqual(
    found,
    ['RSA-PSS', 'Ed25519'].flatMap((algorithm) => [
      `${included}, ${algorithm}: lives-too-long`,
      `${legacy}, ${algorithm}: https://signature-agent.test`,
    ]),
  )
})

test('whatever Signature-Agent says, it is read or refused', async () => {
  const { signature } = (await read()) as { signature: unknown }
  assert.ok(signature)
  const text = fc.oneof(
    fc.string(),
    fc.string({
      unit: fc.constantFrom(
        'sig1',
        '=',
        '"',
        ';',
        ',',
        '(',
        ')',
        'https://a.example/',
        ' ',
        '\\',
        'type',
        'cimd',
      ),
    }),
  )
  const headers = { 'Signature-Agent': `sig1="${AGENT}"` }
  const all = await signed(
    signer,
    { method: 'GET', url: 'https://gate.example/', headers },
    { fields: ['@authority', 'signature-agent'], tag: 'web-bot-auth', createdS: NOW_S, expiresS: NOW_S + 60 },
  )
  fc.assert(
    fc.property(text, (agent) => {
      const rawHeaders = rawHeadersOf({ ...all, 'Signature-Agent': agent })
      const seen = { method: 'GET', base: 'https://gate.example', target: '/', rawHeaders }
      const found = readBotSignature(seen, RULES, NOW_S * 1000)
      if (found.kind === 'signature' && agent !== headers['Signature-Agent'])
        assert.equal(verifySignature(found.signature, signer.key), 'wrong')
    }),
    { numRuns: 2_000 },
  )
})
