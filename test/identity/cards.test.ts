import assert from 'node:assert/strict'
import { test } from 'tap'
import { statedPurposes } from '../../src/classify/known/claims/agent-card.ts'
import { readCard } from '../../src/identity/cards/card-document.ts'
import { readRegistry } from '../../src/identity/cards/registry-document.ts'
import { cardWith } from './published.ts'

const URL_OF_CARD = 'https://example.com/bot'
const RULES = { allowPrivate: false }

/** The card of draft-meunier-webbotauth-registry-04. */
const CURRENT = {
  client_id: URL_OF_CARD,
  client_name: 'Example Bot',
  client_uri: 'https://example.com/bot/about.html',
  logo_uri: 'https://example.com/logo.png',
  contacts: ['mailto:bot-support@example.com'],
  jwks_uri: 'https://example.com/.well-known/http-message-signatures-directory',
  web_bot_auth: {
    'expected-user-agent': 'Mozilla/5.0 ExampleBot',
    'rfc9309-product-token': 'ExampleBot',
    'rfc9309-compliance': false,
    trigger: 'fetcher',
    purpose: 'search',
    'targeted-content': 'Cat pictures',
    'rate-control': '429',
    'rate-expectation': 'avg=10rps;max=100rps',
    'known-urls': ['/', '/robots.txt', '*.png'],
    ips_uri: 'https://example.com/ips.json',
  },
}
const READ = cardWith({
  ...{ url: URL_OF_CARD, homepage: CURRENT.client_uri, contacts: CURRENT.contacts },
  ...{
    purpose: ['search'],
    purposes: ['search'],
    trigger: 'fetcher',
    userAgents: ['Mozilla/5.0 ExampleBot'],
  },
  ...{ robotsToken: 'ExampleBot', content: 'Cat pictures', rateControl: '429' },
  ...{ rateExpectation: 'avg=10rps;max=100rps', knownUrls: ['/', '/robots.txt', '*.png'] },
  rangesUrl: 'https://example.com/ips.json',
})

test('reads the card of the current draft', async () => {
  assert.deepEqual(readCard(CURRENT, URL_OF_CARD, RULES), READ)
})

test('reads the card of earlier drafts: the same members at the top level', async () => {
  const { client_id, jwks_uri, web_bot_auth, ...client } = CURRENT
  const compliance = ['User-Agent', 'Allow', 'Disallow', 'Content-Usage']
  const old = { ...client, ...web_bot_auth, 'rfc9309-compliance': compliance, keys: [] }
  assert.deepEqual(readCard(old, URL_OF_CARD, RULES), { ...READ, keepsRobots: true })
  assert.equal(client_id, URL_OF_CARD)
  assert.ok(jwks_uri.length > 0)
})

test('a document that says nothing about an agent is not a card', async () => {
  assert.equal(readCard({ keys: [] }, URL_OF_CARD, RULES), null)
  assert.equal(readCard({ client_id: URL_OF_CARD, jwks: { keys: [] } }, URL_OF_CARD, RULES), null)
})

const INVALID: readonly (readonly [member: string, value: unknown, problem: RegExp])[] = [
  ['trigger', 'button', /^web_bot_auth\.trigger must be one of fetcher, crawler$/],
  ['purpose', 7, /^web_bot_auth\.purpose must be at most 16 texts/],
  ['purpose', Array(17).fill('search'), /^web_bot_auth\.purpose must be at most 16 texts/],
  ['known-urls', ['/', 'x'.repeat(301)], /^web_bot_auth\.known-urls must be at most 16 texts/],
  ['rate-expectation', 'a\nb', /^web_bot_auth\.rate-expectation must be a text/],
  ['rfc9309-compliance', 'yes', /^web_bot_auth\.rfc9309-compliance must be true or false$/],
  ['ips_uri', 'http://example.com/ips.json', /^web_bot_auth\.ips_uri must be a URL with https:\/\/$/],
  ['ips_uri', 'https://a:b@example.com/', /^web_bot_auth\.ips_uri has a user or a password in it$/],
]
for (const [member, value, problem] of INVALID)
  test(`ignores ${member} of ${JSON.stringify(value).slice(0, 40)} and says why`, async () => {
    const card = readCard({ ...CURRENT, web_bot_auth: { [member]: value } }, URL_OF_CARD, RULES)
    assert.equal(card?.ignored.length, 1)
    assert.match(card.ignored[0]!, problem)
    assert.equal(card.name, 'Example Bot')
  })

test('a web_bot_auth that is a list is ignored', async () => {
  const card = readCard({ ...CURRENT, web_bot_auth: [] }, URL_OF_CARD, RULES)
  assert.deepEqual(card?.ignored, ['web_bot_auth must be an object'])
})

test('a card with jwks and jwks_uri is refused', async () => {
  const both = { ...CURRENT, jwks: { keys: [] } }
  assert.throws(() => readCard(both, URL_OF_CARD, RULES), /jwks_uri and jwks exclude each other/)
})

test('purposes are read in the words of policies, of AIPREF and of Content-Signal', async () => {
  const purposesOf = (purpose: unknown) =>
    readCard({ web_bot_auth: { purpose } }, URL_OF_CARD, RULES)?.purposes
  assert.deepEqual(purposesOf('search'), ['search'])
  assert.deepEqual(purposesOf(['Train-AI', 'ai-train', ' tdm ']), ['training'])
  assert.deepEqual(purposesOf(['ai-input', 'search']), ['assistant', 'search'])
  assert.deepEqual(purposesOf('Cat pictures'), [])
})

test('a card chooses among published purposes and adds none', async () => {
  const stated = (published: readonly string[], purposes: readonly ('search' | 'training')[]) =>
    statedPurposes(published, { purposes })
  assert.deepEqual(stated(['search', 'training'], ['search']), ['search'])
  assert.deepEqual(stated(['training'], ['search']), ['training'])
  assert.deepEqual(stated(['training'], []), ['training'])
  assert.deepEqual(stated([], ['search']), [])
  assert.deepEqual(statedPurposes(['search'], null), ['search'])
})

/** The list of draft-meunier-webbotauth-registry-04. */
const LIST = `# An example list of bots
https://bot1.example.com/.well-known/http-message-signatures-directory
https://crawler2.example.com/.well-known/http-message-signatures-directory

# Now the list of platforms
https://zerotrust-gateway.example.com/v1/signature-agent-card

# Below is an inlined card with the data URL scheme
data:application/json,{"client_name":"Inline Bot","jwks_uri":"https://inline.example.com/.well-known/http-message-signatures-directory"}
`
const REGISTRY = 'https://registry.example/agents.txt'

test('reads the registry of the current draft', async () => {
  const { places, inline, ignored } = readRegistry(LIST, REGISTRY, RULES)
  assert.deepEqual(places, [
    'https://bot1.example.com/.well-known/http-message-signatures-directory',
    'https://crawler2.example.com/.well-known/http-message-signatures-directory',
    'https://zerotrust-gateway.example.com/v1/signature-agent-card',
  ])
  const card = cardWith({ url: REGISTRY, name: 'Inline Bot' })
  assert.deepEqual([...inline], [['https://inline.example.com', card]])
  assert.deepEqual(ignored, [])
})

test('reads all line ends and comments behind an entry and cards in base64', async () => {
  const card = Buffer.from('{"client_id":"https://b.example/me","client_name":"B"}').toString('base64')
  const text = `https://a.example/card # the first\r\n\tdata:application/json;base64,${card}\rhttps://c.example/\n#\n`
  const { places, inline } = readRegistry(text, REGISTRY, RULES)
  assert.deepEqual(places, ['https://a.example/card', 'https://c.example/'])
  assert.deepEqual([...inline.keys()], ['https://b.example/me'])
})

const BAD_LINES: readonly (readonly [line: string, problem: RegExp])[] = [
  ['http://a.example/card', /must be a URL with https/],
  ['ftp://a.example', /must be a URL with https/],
  ['javascript:alert(1)', /must be a URL with https/],
  ['https://a.example/#card', /has a fragment/],
  ['data:text/html,<b>', /must be a card as data:application\/json/],
  ['data:application/json,[]', /must be a card as data/],
  ['data:application/json,{"client_name":', /must be a card as data/],
  [`data:application/json,{"client_name":"${'x'.repeat(4_000)}"}`, /must be a card as data/],
  ['data:application/json,{"__proto__":{"client_name":"x"}}', /must be a card as data/],
  ['data:application/json,{"client_name":"Unnamed"}', /describes no signer/],
  ['data:application/json,{"jwks_uri":"https://a.example/"}', /is not a signature agent card/],
  ['data:application/json,{"client_name":"x","client_id":"http://a.example"}', /describes no signer/],
]
for (const [line, problem] of BAD_LINES)
  test(`names the line ${line.slice(0, 60)} of a registry`, async () => {
    const { places, ignored } = readRegistry(`https://good.example\n\n${line}`, REGISTRY, RULES)
    assert.deepEqual(places, ['https://good.example/'])
    assert.equal(ignored.length, 1)
    assert.match(ignored[0]!, /^line 3: it /)
    assert.match(ignored[0]!, problem)
  })

test('a registry is limited to 250 cards and needs one', async () => {
  const many = Array.from({ length: 300 }, (_, i) => `https://a${i}.example`).join('\n')
  const { places, ignored } = readRegistry(many, REGISTRY, RULES)
  assert.equal(places.length, 250)
  assert.match(ignored[0]!, /^line 251: it is one of more than 250 cards$/)
  assert.throws(() => readRegistry('# nothing\n', REGISTRY, RULES), /it lists no card/)
  assert.throws(() => readRegistry('<html>', REGISTRY, RULES), /line 1: it must be a URL/)
})
