import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { UNKNOWN, type Verdict } from '../../src/classify/verdict/verdict.ts'
import { readSource } from '../../src/config/source.ts'
import { parsePolicyText } from '../../src/runtime/policy-source.ts'
import { isRestricting } from '../../src/policy/action.ts'
import { decide } from '../../src/policy/decide.ts'
import type { Facts } from '../../src/policy/facts.ts'
import type { Policy } from '../../src/policy/policy.ts'

const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'

/** Typical clients: what is held of them, and what they say they are. */
const CLIENTS = {
  person: client({ kind: 'human', confidence: 0.97 }, CHROME),
  personWithOddStack: client({ kind: 'human', confidence: 0.6, evidence: ['stack-disagrees'] }, CHROME),
  googlebot: client(
    { ...crawler('googlebot'), proof: { method: 'ip-range', agent: 'x', key: null } },
    'Googlebot/2.1',
  ),
  fakeGooglebot: client(crawler('googlebot'), 'Googlebot/2.1'),
  previewBot: client({ ...crawler('previewbot'), agent: agent('previewbot', 'custom') }, 'PreviewBot/1.0'),
  openaiSdk: client({ ...crawler('x'), agent: agent('openai-node', 'llm-sdk') }, 'OpenAI/JS 6.0'),
  signedAgent: client(
    {
      ...crawler('x'),
      agent: agent('operator', 'browser-agent'),
      proof: { method: 'web-bot-auth', agent: 'x', key: null },
    },
    CHROME,
  ),
  // Anyone can sign as their own domain.
  stranger: client({ ...proven('https://stranger.test') }, 'Stranger/1.0'),
  strangerAsGooglebot: client(
    { ...proven('https://stranger.test'), evidence: ['signature-proven', 'signed-as-another'] },
    'Googlebot/2.1',
  ),
  strangerInDisguise: client(
    { ...proven('https://stranger.test'), evidence: ['signature-proven', 'spoofed-browser'] },
    CHROME,
  ),
  signedAsGooglebot: client(
    {
      ...{ ...proven('https://operator.test'), agent: agent('operator', 'browser-agent') },
      evidence: ['signature-proven', 'signed-as-another'],
    },
    'Googlebot/2.1',
  ),
  signedFromElsewhere: client(
    {
      ...{ ...proven('https://operator.test'), agent: agent('operator', 'browser-agent') },
      evidence: ['signature-proven', 'signed-from-foreign-address'],
    },
    CHROME,
  ),
  brokenSignature: client({ ...crawler('googlebot'), evidence: ['signature-failed'] }, 'Googlebot/2.1'),
  brokenAtHome: client(
    {
      ...{ ...crawler('googlebot'), proof: { method: 'reverse-dns', agent: 'googlebot', key: null } },
      evidence: ['signature-failed', 'host-proven'],
    },
    'Googlebot/2.1',
  ),
  unchecked: client({ ...crawler('googlebot'), evidence: ['signature-unchecked'] }, 'Googlebot/2.1'),
  googlebotElsewhere: client({ ...crawler('googlebot'), evidence: ['host-foreign'] }, 'Googlebot/2.1'),
  curl: client({ kind: 'automation', confidence: 0.95, evidence: ['names-tool'] }, 'curl/8.17.0'),
  scraper: client(
    { kind: 'automation', confidence: 0.9, evidence: ['spoofed-browser', 'stack-disagrees'] },
    CHROME,
  ),
  agentInDisguise: client({ kind: 'agent', confidence: 0.9, evidence: ['spoofed-browser'] }, CHROME),
  doubtful: client({ kind: 'automation', confidence: 0.5, evidence: ['spoofed-browser'] }, CHROME),
  unknown: client({ kind: 'unknown', confidence: 0 }, 'SomethingNew/1.0'),
}

type Client = keyof typeof CLIENTS

/** Who is turned away; all others are tagged. */
const TURNED_AWAY: Readonly<Record<string, readonly Client[]>> = {
  'observe.yaml': [],
  'block-unverified-crawlers.yaml': [
    ...(['fakeGooglebot', 'strangerAsGooglebot', 'brokenSignature'] as const),
    ...(['unchecked', 'googlebotElsewhere'] as const),
  ],
  'block-spoofed-browsers.yaml': ['strangerInDisguise', 'scraper', 'agentInDisguise'],
  'block-impostors.yaml': [
    ...(['strangerAsGooglebot', 'signedAsGooglebot', 'brokenSignature', 'googlebotElsewhere'] as const),
  ],
  'allow-verified-only.yaml': [
    ...(['fakeGooglebot', 'previewBot', 'openaiSdk'] as const),
    ...(['stranger', 'strangerAsGooglebot', 'strangerInDisguise'] as const),
    ...(['brokenSignature', 'unchecked', 'googlebotElsewhere', 'curl'] as const),
    ...(['scraper', 'agentInDisguise', 'doubtful'] as const),
  ],
}

const OPEN = [
  ...['/robots.txt', '/.well-known/security.txt', '/.well-known/http-message-signatures-directory'],
  ...['/feed', '/feed/', '/blog/feed', '/blog/feed/', '/feed.xml', '/news/feed.json', '/rss', '/rss.xml'],
  ...['/index.xml', '/atom.xml', '/blog/posts.atom', '/news.rss', '/sitemap.xml', '/sitemap-2.xml'],
  ...['/sitemaps/1.xml', '/sitemap_index.xml', '/sitemap.xml.gz', '/favicon.ico', '/robots.txt?x=1'],
]
const OTHER = [
  '/',
  '/search?q=1',
  '/api/items',
  '/robots.txt/x',
  '/a/..%2frobots.txt',
  '/feeding',
  '/x.rss.html',
]

for (const [file, turnedAway] of Object.entries(TURNED_AWAY)) {
  const policy = parsePolicyText(readFileSync(`config/${file}`, 'utf8'), file).policy
  test(`config/${file}`, async (t) => {
    t.test('who is turned away', async () => {
      for (const path of OTHER) assert.deepEqual(restricted(policy, { path }), turnedAway, path)
    })
    t.test('open paths are allowed for every client', async () => {
      for (const path of OPEN) {
        assert.deepEqual(restricted(policy, { path }), [], path)
        assert.deepEqual(restricted(policy, { path, method: 'HEAD' }), [], path)
      }
    })
    t.test('but only from reading it', async () => {
      assert.deepEqual(restricted(policy, { path: '/feed', method: 'POST' }), turnedAway)
    })
    t.test('allowed requests are tagged, never passed untagged', async () => {
      for (const facts of Object.values(CLIENTS)) {
        const { action } = decide(policy, facts, 0)
        assert.ok(action.kind === 'tag' || isRestricting(action))
      }
    })
    t.test('a person is never on trial either', async () => {
      assert.equal(decide(policy, CLIENTS.person, 0).wouldHave, null)
    })
  })
}

test('a crawler without proof is told to come later, a program in disguise is not', async () => {
  const statusOf = (file: string, facts: Facts) => {
    const { action } = decide(parsePolicyText(readFileSync(`config/${file}`, 'utf8'), file).policy, facts, 0)
    return action.kind === 'block' ? action.status : null
  }
  assert.equal(statusOf('block-unverified-crawlers.yaml', CLIENTS.fakeGooglebot), 503)
  assert.equal(statusOf('block-spoofed-browsers.yaml', CLIENTS.scraper), 403)
  assert.equal(statusOf('block-impostors.yaml', CLIENTS.googlebotElsewhere), 503)
  assert.equal(statusOf('block-impostors.yaml', CLIENTS.strangerAsGooglebot), 403)
})

test('config/block-impostors.yaml says who would be turned away with a proof that something contradicts', async () => {
  const file = 'config/block-impostors.yaml'
  const { policy } = parsePolicyText(readFileSync(file, 'utf8'), file)
  assert.equal(decide(policy, CLIENTS.signedFromElsewhere, 0).wouldHave?.rule, 'proven and contradicted')
  assert.equal(decide(policy, CLIENTS.signedAgent, 0).wouldHave, null)
})

test('config/allow-verified-only.yaml says what blocking the unknown would do', async () => {
  const file = 'config/allow-verified-only.yaml'
  const { wouldHave } = decide(parsePolicyText(readFileSync(file, 'utf8'), file).policy, CLIENTS.unknown, 0)
  assert.equal(wouldHave?.rule, 'unknown clients')
})

test('config/allow-search-not-training.yaml blocks training by name and allows search and assistants', async () => {
  const file = 'config/allow-search-not-training.yaml'
  const { policy } = parsePolicyText(readFileSync(file, 'utf8'), file)
  const folder = new URL('../../signatures/', import.meta.url)
  const all = ['ai-crawlers', 'search-crawlers', 'coding-agents', 'monitors'].flatMap((name) => {
    const source = readSource(readFileSync(new URL(`${name}.yaml`, folder), 'utf8'), name)
    return parseSoftwareList(source.value)
  })
  const outcomeOf = (id: string, path = '/') => {
    const { name, category, purposes } = all.find((each) => each.id === id)!
    const verdict = { ...crawler(id), agent: { id, name, category: category!, purposes } }
    return decide(policy, { ...client(verdict, `${name}/1.0`), path }, 0)
  }
  const ruleOf = (id: string, path?: string) => outcomeOf(id, path).rule
  for (const id of [
    'gptbot',
    'claudebot',
    'ccbot',
    'bytespider',
    'meta-externalagent',
    'amazonbot',
    'applebot',
  ]) {
    assert.equal(ruleOf(id), 'training', id)
    assert.equal(outcomeOf(id).action.kind, 'block', id)
    assert.equal(ruleOf(id, '/robots.txt'), 'robots.txt', id)
  }
  const allowed = ['googlebot', 'bingbot', 'oai-searchbot', 'perplexitybot', 'claude-searchbot']
  for (const id of [...allowed, 'chatgpt-user', 'claude-user', 'perplexity-user'])
    assert.equal(ruleOf(id), 'search and assistants', id)
  for (const id of ['claude-code', 'uptimerobot', 'diffbot']) assert.equal(ruleOf(id), 'otherwise', id)
  for (const each of [CLIENTS.person, CLIENTS.curl, CLIENTS.unknown, CLIENTS.agentInDisguise])
    assert.equal(decide(policy, each, 0).rule, 'otherwise')
})

function restricted(policy: Policy, asked: Partial<Facts>): string[] {
  const all = Object.entries(CLIENTS)
  return all
    .filter(([, facts]) => isRestricting(decide(policy, { ...facts, ...asked }, 0).action))
    .map(([name]) => name)
}

function client(
  held: Partial<Omit<Verdict, 'evidence'>> & { readonly evidence?: readonly string[] },
  userAgent: string,
): Facts {
  const evidence = (held.evidence ?? []).map((kind) => ({ kind, detail: kind, weight: 1 }))
  return {
    method: 'GET',
    host: 'shop.example.test',
    path: '/',
    address: '192.0.2.7',
    rawHeaders: ['Host', 'shop.example.test', 'User-Agent', userAgent, 'Accept', '*/*'],
    print: { connection: { ja4: null, stable: null, http2: null, noHello: null }, ja4h: null },
    verdict: {
      ...{ ...UNKNOWN, ...held },
      evidence,
    },
    forged: [],
  }
}

function proven(signer: string): Partial<Omit<Verdict, 'evidence'>> {
  const proof = { method: 'web-bot-auth', agent: signer, key: 'k' } as const
  return { kind: 'agent', agent: null, confidence: 0.999, proof, conflicts: [] }
}

function crawler(id: string): Partial<Omit<Verdict, 'evidence'>> {
  return { kind: 'agent', agent: agent(id, 'crawler'), confidence: 0.95, proof: null, conflicts: [] }
}

function agent(id: string, category: string): Verdict['agent'] {
  return { id, name: id, category, purposes: [] }
}
