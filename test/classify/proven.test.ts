import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { classify, recall } from '../../src/classify/verdict/classify.ts'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import {
  NO_PROOFS,
  type PlaceFinding,
  type Proofs,
  type SignatureFinding,
  type SignerFacts,
} from '../../src/classify/verdict/proof.ts'
import { PROOF_EVIDENCE } from '../../src/classify/verdict/proof-evidence.ts'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { Scratch } from '../../src/classify/verdict/scratch.ts'
import type { Verdict } from '../../src/classify/verdict/verdict.ts'
import { parseWeights } from '../../src/classify/known/weights.ts'
import { knowledgeOf } from '../../src/runtime/signatures/knowledge-files.ts'
import { cardWith } from '../identity/published.ts'
import type { AgentCard } from '../../src/classify/known/claims/agent-card.ts'
import { AddressRanges, parseAddressRange } from '../../src/wire/address-ranges.ts'
import type { Ja4 } from '../../src/fingerprint/ja4.ts'
import { NOTHING_KNOWN } from '../../src/proxy/connection/connection.ts'

/** For all verdicts of this file: what a request leaves behind changes nothing of the next. */
const SCRATCH = new Scratch()
const NOW_MS = Date.UTC(2026, 10, 21, 12)
const CURL = 't13d3112h2_e8f1e7e78f70_b26ce05bbdd6'
const OWN_JA4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'
/** Of the next version of its owner. */
const NEXT_JA4 = 't13d1517h2_8daaf6152771_b6f405a00624'
const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'
const WEIGHTS = parseWeights(
  JSON.parse(readFileSync(new URL('../../signatures/weights.json', import.meta.url), 'utf8')),
)
const SOURCE = { source: 's', date: '2026-11-01' }
const KNOWLEDGE = knowledgeOf(
  parseSoftwareList([
    agent(
      'shopper',
      'Shopper',
      { signature_agent: 'https://shopper.test/', ranges: { ...SOURCE, prefixes: ['192.0.2.0/24'] } },
      [{ user_agent: 'Shopper/' }, { ja4: OWN_JA4 }],
    ),
    agent('buyer', 'Buyer', { signature_agent: 'https://shopper.test' }, [{ user_agent: 'Buyer/' }]),
    {
      ...agent('seller', 'Seller', { signature_agent: 'https://seller.test' }, [{ user_agent: 'Seller/' }]),
      vendor: 'Market',
    },
    { ...agent('teller', 'Teller', {}, [{ user_agent: 'Teller/' }]), vendor: 'Market' },
    {
      ...agent('dealer', 'Dealer', { signature_agent: 'https://d.test' }, [{ user_agent: 'Dealer/' }]),
      vendor: 'Market',
    },
    agent('bot', 'Bot', { reverse_dns: ['.crawl.bot.test', 'bot.example'] }, [{ user_agent: 'Bot/' }]),
    {
      ...agent('several', 'Several', { signature_agent: 'https://several.test' }, [
        { user_agent: 'Several/' },
      ]),
      purpose: ['search', 'training'].map((is) => ({ is, ...SOURCE })),
    },
    agent('net', 'Net', { asns: [64500, 64501] }, [{ user_agent: 'Net/' }]),
    agent(
      'both',
      'Both',
      {
        signature_agent: 'https://both.test',
        reverse_dns: ['.both.test'],
        ranges: { ...SOURCE, prefixes: ['203.0.113.0/24'] },
      },
      [{ user_agent: 'Both/' }],
    ),
    {
      ...{ id: 'curl', name: 'curl', kind: 'tool' },
      signatures: [
        { user_agent: 'curl/', ...SOURCE },
        { ja4: CURL, ...SOURCE },
      ],
    },
    {
      ...{ id: 'chrome', name: 'Chrome', kind: 'browser', engine: 'blink' },
      signatures: [
        { user_agent: 'Chrome/', ...SOURCE },
        { ja4: OWN_JA4, ...SOURCE },
        { ja4: NEXT_JA4, ...SOURCE },
      ],
    },
  ]),
  WEIGHTS,
)
const PUBLIC = '198.51.100.9'
const SIGNED = signed('https://shopper.test')

test('without proofs a verdict is the very one that it is without', async () => {
  const conduct = new Conduct(null, '', '192.0.2.9')
  const verdict = judged({ userAgent: 'Shopper/1', conduct, proofs: NO_PROOFS })
  assert.equal(judged({ userAgent: 'Shopper/1', conduct, proofs: NO_PROOFS }), verdict)
})

test('a signer is that agent, whatever it claims and looks like', async () => {
  for (const userAgent of ['Shopper/1', CHROME, 'curl/8.5.0', 'Unheard/1', '', 'x'.repeat(5000)]) {
    const verdict = judged({ userAgent, proofs: SIGNED })
    assert.deepEqual([verdict.kind, verdict.agent?.id, verdict.software?.id], ['agent', 'shopper', 'shopper'])
    assert.deepEqual(verdict.proof, {
      method: 'web-bot-auth',
      agent: 'https://shopper.test',
      key: 'k'.repeat(43),
    })
    assert.equal(verdict.confidence, 0.999)
    assert.equal(verdict.evidence[0]!.kind, 'signature-proven')
    assert.match(verdict.evidence[0]!.detail, /^signed by https:\/\/shopper\.test with the key k{43}$/)
    assert.deepEqual(verdict.conflicts, [])
    assert.ok(Object.isFrozen(verdict))
  }
})

test('of several agents with one key, the claimed one is proven', async () => {
  assert.equal(judged({ userAgent: 'Buyer/2', proofs: SIGNED }).agent!.id, 'buyer')
  assert.deepEqual(judged({ userAgent: 'Buyer/2', proofs: SIGNED }).conflicts, [])
})

test('a signer that claims another agent is the signer, and the conflict is reported', async () => {
  const verdict = judged({ userAgent: 'Bot/1', proofs: SIGNED })
  assert.deepEqual([verdict.agent?.id, verdict.conflicts], ['shopper', ['signed-as-another']])
  assert.match(detail(verdict, 'signed-as-another'), /claims to be Bot, but https:\/\/shopper\.test signed/)
})

test('a vendor may sign for another of its agents without a known key', async () => {
  const proofs = signed('https://seller.test')
  const teller = judged({ userAgent: 'Teller/1', proofs })
  assert.deepEqual([teller.agent?.id, teller.conflicts], ['seller', []])
  for (const userAgent of ['Dealer/1', 'Bot/1'])
    assert.deepEqual(judged({ userAgent, proofs }).conflicts, ['signed-as-another'], userAgent)
})

test('an unlisted signer is proven, but is not a known agent', async () => {
  const stranger = signed('https://stranger.test')
  const verdict = judged({ userAgent: 'Unheard/1', proofs: stranger })
  assert.deepEqual([verdict.kind, verdict.agent, verdict.software], ['agent', null, null])
  assert.equal(verdict.proof!.agent, 'https://stranger.test')
  const liar = judged({ userAgent: 'Bot/1', proofs: stranger })
  assert.deepEqual([liar.agent, liar.software, liar.conflicts], [null, null, ['signed-as-another']])
  const tool = judged({ userAgent: 'curl/8.5.0', proofs: stranger })
  assert.deepEqual([tool.agent, tool.software?.id], [null, 'curl'])
  assert.equal(judged({ userAgent: CHROME, proofs: stranger }).software, null)
})

test('a proven agent with the fingerprint of something else keeps the proof, and it is told', async () => {
  const odd = judged({ userAgent: 'Shopper/1', ja4: CURL, proofs: SIGNED })
  assert.deepEqual([odd.agent?.id, odd.conflicts], ['shopper', ['signed-with-foreign-fingerprint']])
  assert.match(detail(odd, 'signed-with-foreign-fingerprint'), /belongs to curl, not to Shopper/)
  assert.equal(odd.proof!.method, 'web-bot-auth')
  // What Shopper is made with has other versions, and has them first.
  for (const ja4 of [OWN_JA4, NEXT_JA4, 't13d0000h2_000000000000_000000000000'])
    assert.deepEqual(judged({ userAgent: 'Shopper/1', ja4, proofs: SIGNED }).conflicts, [], ja4)
  const unknown = judged({ userAgent: 'Buyer/1', ja4: CURL, proofs: SIGNED })
  assert.deepEqual(unknown.conflicts, [], 'the software of Buyer is unknown')
})

test('a proven agent from elsewhere than is published keeps the proof, and it is told', async () => {
  for (const userAgent of ['Shopper/1', CHROME]) {
    const far = judged({ userAgent, address: '198.51.100.1', proofs: SIGNED })
    assert.equal(far.proof!.method, 'web-bot-auth')
    assert.ok(far.conflicts.includes('signed-from-foreign-address'), userAgent)
    const near = judged({ userAgent, address: '192.0.2.7', proofs: SIGNED })
    assert.deepEqual([near.proof!.method, near.conflicts], ['web-bot-auth', []])
    assert.deepEqual(judged({ userAgent, address: '10.0.0.1', proofs: SIGNED }).conflicts, [])
  }
})

test('a listed signer never counts as a spoofed browser; an unlisted one may', async () => {
  const pretending = { userAgent: CHROME, ja4: CURL }
  assert.deepEqual(judged({ ...pretending, proofs: NO_PROOFS }).conflicts, ['spoofed-browser'])
  const signer = judged({ ...pretending, proofs: signed('https://both.test') })
  assert.deepEqual([signer.agent?.id, signer.conflicts], ['both', []])
  const stranger = judged({ ...pretending, proofs: signed('https://stranger.test') })
  assert.deepEqual(stranger.conflicts, ['spoofed-browser'])
})

test('where a proven agent is, is told once, by the best that is known of it', async () => {
  const table: readonly (readonly [address: string, hosts: readonly string[] | null, ...kinds: string[]])[] =
    [
      [PUBLIC, null, 'signed-from-foreign-address'],
      [PUBLIC, ['x.other.test'], 'signed-from-foreign-address'],
      [PUBLIC, ['x.both.test']],
      ['203.0.113.9', ['x.other.test']],
      ['203.0.113.9', null],
      ['10.0.0.1', []],
    ]
  for (const userAgent of ['Both/1', CHROME])
    for (const [address, hosts, ...conflicts] of table) {
      const { places } = at(hosts === null ? { isHostKnown: false } : { hosts })
      const { signature } = signed('https://both.test')
      const verdict = judged({ userAgent, address, proofs: { signature, places } })
      assert.deepEqual(verdict.conflicts, conflicts, `${userAgent} ${address} ${hosts}`)
      assert.equal(verdict.evidence[0]!.kind, 'signature-proven')
      assert.equal(verdict.proof!.method, 'web-bot-auth')
    }
})

test('a host name of the vendor outweighs its list, and the list another name', async () => {
  const told = (address: string, hosts: readonly string[]) => {
    const { proof, conflicts } = judged({ userAgent: 'Both/1', address, proofs: at({ hosts }) })
    return [proof?.method ?? null, ...conflicts]
  }
  assert.deepEqual(told(PUBLIC, ['a.both.test']), ['reverse-dns'])
  assert.deepEqual(told('203.0.113.9', []), ['ip-range'])
  assert.deepEqual(told('203.0.113.9', ['a.both.test']), ['ip-range'])
  assert.deepEqual(told(PUBLIC, []), [null, 'host-foreign', 'address-foreign'])
})

test('an unknown signer gains nothing from addresses of the agent it names', async () => {
  const { signature } = signed('https://stranger.test')
  const { places } = at({ hosts: ['a.both.test'] })
  const verdict = judged({ userAgent: 'Both/1', address: '203.0.113.9', proofs: { signature, places } })
  assert.deepEqual([verdict.agent, verdict.proof!.agent], [null, 'https://stranger.test'])
  assert.deepEqual(verdict.conflicts, ['signed-as-another'])
})

test('an agent without a known key is proven by its address, whatever the signature', async () => {
  const { signature } = signed('https://keys.bot.test')
  const { places } = at({ hosts: ['a.bot.example'] })
  const proven = judged({ userAgent: 'Bot/1', address: PUBLIC, proofs: { signature, places } })
  assert.deepEqual([proven.agent?.id, proven.proof?.method, proven.conflicts], ['bot', 'reverse-dns', []])
  assert.deepEqual(
    proven.evidence.slice(0, 2).map(({ kind }) => kind),
    ['signature-proven', 'host-proven'],
  )
  const elsewhere = { signature, places: at({ hosts: [] }).places }
  const claimed = judged({ userAgent: 'Bot/1', address: PUBLIC, proofs: elsewhere })
  assert.deepEqual([claimed.agent, claimed.conflicts], [null, ['signed-as-another']])
})

test('a signature that does not hold proves nothing, and takes nothing but the good name', async () => {
  const failed = {
    signature: { kind: 'failed', why: 'expired', agentId: 'https://shopper.test' },
    places: null,
  } as const
  const near = judged({ userAgent: 'Shopper/1', address: '192.0.2.7', proofs: failed })
  assert.deepEqual([near.proof?.method, near.conflicts], ['ip-range', ['signature-failed']])
  assert.equal(
    near.evidence[0]!.detail,
    'it claims to be signed by https://shopper.test, but the signature is invalid: expired',
  )
  const human = judged({ userAgent: CHROME, proofs: failed })
  assert.equal(human.kind, judged({ userAgent: CHROME, proofs: NO_PROOFS }).kind)
  const unchecked = { signature: { kind: 'unchecked', why: 'no-key', agentId: null }, places: null } as const
  const later = judged({ userAgent: 'Shopper/1', proofs: unchecked })
  assert.deepEqual([later.proof, later.conflicts], [null, []])
  assert.equal(later.evidence[0]!.kind, 'signature-unchecked')
})

test('a bare key changes nothing of a verdict', async () => {
  const proofs = { signature: { kind: 'key', thumbprint: 'T' }, places: null } as const
  for (const asked of [
    { userAgent: 'Shopper/1', address: '192.0.2.7' },
    { userAgent: 'Shopper/1' },
    { userAgent: CHROME },
  ]) {
    const [without, verdict] = [judged({ ...asked, proofs: NO_PROOFS }), judged({ ...asked, proofs })]
    const [first, ...rest] = verdict.evidence
    assert.equal(first!.kind, 'bare-key')
    assert.match(first!.detail, /signed with the key T, .* names no agent/)
    assert.deepEqual({ ...verdict, evidence: rest }, without)
  }
})

test('a token about a person names its issuer, and changes nothing else', async () => {
  const signature = { kind: 'key', thumbprint: 'T', personOf: 'https://ps.example' } as const
  const verdict = judged({ userAgent: CHROME, proofs: { signature, places: null } })
  const [first, ...rest] = verdict.evidence
  assert.equal(first!.kind, 'acts-for-person')
  assert.match(first!.detail, /https:\/\/ps\.example says that an agent with this key acts for a person/)
  assert.deepEqual({ ...verdict, evidence: rest }, judged({ userAgent: CHROME, proofs: NO_PROOFS }))
})

test('a host name proves only the claimed agent, by whole labels', async () => {
  const table: readonly (readonly [host: string | null, expected: string])[] = [
    ['a-1.crawl.bot.test', 'host-proven'],
    ['bot.example', 'host-proven'],
    ['x.bot.example', 'host-proven'],
    ['evilbot.example', 'host-foreign'],
    ['crawl.bot.test', 'host-foreign'],
    ['a.crawl.bot.test.evil.test', 'host-foreign'],
    ['evilcrawl.bot.test', 'host-foreign'],
    [null, 'host-foreign'],
  ]
  for (const [host, expected] of table) {
    const verdict = judged({
      userAgent: 'Bot/1',
      address: PUBLIC,
      proofs: at({ hosts: host === null ? [] : [host] }),
    })
    assert.ok(detail(verdict, expected) !== '', `${host}`)
    const isProven = expected === 'host-proven'
    assert.deepEqual(verdict.proof, isProven ? { method: 'reverse-dns', agent: 'bot', key: null } : null)
    assert.deepEqual(verdict.conflicts, isProven ? [] : ['host-foreign'])
  }
  const several = at({ hosts: ['a.other.test', 'b.crawl.bot.test'] })
  assert.equal(judged({ userAgent: 'Bot/1', address: PUBLIC, proofs: several }).proof?.method, 'reverse-dns')
  const silent = judged({
    userAgent: 'Bot/1',
    address: PUBLIC,
    proofs: at({ hosts: [], isHostKnown: false }),
  })
  assert.deepEqual([silent.proof, silent.conflicts], [null, []])
  const other = judged({
    userAgent: 'Shopper/1',
    address: '192.0.2.7',
    proofs: at({ hosts: ['x.bot.example'] }),
  })
  assert.equal(other.proof!.method, 'ip-range')
  assert.equal(
    judged({ userAgent: 'Bot/1', address: '10.0.0.1', proofs: at({ hosts: ['x.bot.example'] }) }).proof,
    null,
  )
  assert.equal(
    judged({ userAgent: 'curl/8', address: PUBLIC, proofs: at({ hosts: ['x.bot.example'] }) }).proof,
    null,
  )
})

test('what an address says of a verdict is worked out once, and not for another address', async () => {
  const proofs = at({ hosts: [] })
  const from = (address: string, userAgent = 'Both/1') => judged({ userAgent, address, proofs })
  assert.equal(from(PUBLIC), from(PUBLIC))
  assert.notEqual(from(PUBLIC, 'Bot/1'), from(PUBLIC))
  // Another list of the same agent, and the same verdict before: only the address tells them apart.
  for (const address of ['203.0.113.9', PUBLIC, '203.0.113.9'])
    assert.equal(from(address).conflicts.includes('host-foreign'), address === PUBLIC, address)
})

test('a network speaks for or against who claims to be an agent, and proves nothing', async () => {
  const own = judged({
    userAgent: 'Net/1',
    address: PUBLIC,
    proofs: at({ network: { asn: 64500, name: 'Net Inc.' } }),
  })
  assert.deepEqual([own.proof, own.conflicts], [null, []])
  assert.match(detail(own, 'network-of-agent'), /AS64500 \(Net Inc\.\)/)
  const far = judged({
    userAgent: 'Net/1',
    address: PUBLIC,
    proofs: at({ network: { asn: 64999, name: null } }),
  })
  assert.deepEqual(far.conflicts, ['network-foreign'])
  assert.equal(judged({ userAgent: 'Net/1', address: PUBLIC, proofs: at({}) }).conflicts.length, 0)
})

test('what is kept of it is worded again', async () => {
  const { evidence } = recall(KNOWLEDGE, [...PROOF_EVIDENCE, 'names-agent'], 'agent')
  assert.deepEqual(
    evidence.filter(({ detail }) => detail === '' || detail === undefined),
    [],
  )
  assert.deepEqual(new Set(evidence.map(({ kind }) => kind)), new Set([...PROOF_EVIDENCE, 'names-agent']))
})

test('the card of a proven agent says for which of its published purposes it comes', async () => {
  const about = (purposes: AgentCard['purposes']): SignerFacts => {
    return { card: cardWith({ purposes }), registries: [], ranges: null }
  }
  const purposesOf = (userAgent: string, facts: SignerFacts | null) =>
    judged({ userAgent, proofs: signed('https://several.test', facts) }).agent?.purposes
  assert.deepEqual(purposesOf('Several/1', null), ['search', 'training'])
  assert.deepEqual(purposesOf('Several/1', about(['search', 'assistant'])), ['search'])
  assert.deepEqual(purposesOf('Several/1', about(['assistant'])), ['search', 'training'])
  const claimed = judged({ userAgent: 'Several/1', proofs: NO_PROOFS })
  assert.deepEqual(claimed.agent?.purposes, ['search', 'training'])
})

test('a signature of the Trusted Agent Protocol is evidence of its own beside any other', async () => {
  const unchecked = { kind: 'unchecked', why: 'payment-tag', agentId: null } as const
  const proofs = (signature: SignatureFinding): Proofs => ({ signature, places: null })
  const alone = judged({
    userAgent: 'Unheard/1',
    proofs: proofs({ ...unchecked, payment: 'agent-browser-auth' }),
  })
  const told = alone.evidence.map(({ kind }) => kind)
  assert.ok(told.includes('tap-browser') && !told.includes('signature-unchecked'))
  assert.deepEqual([alone.proof, alone.conflicts], [null, []])
  const { signature } = signed('https://shopper.test')
  const paying = judged({
    userAgent: 'Buyer/1',
    proofs: proofs({ ...signature!, payment: 'agent-payer-auth' }),
  })
  assert.deepEqual([paying.evidence.at(-1)?.kind, paying.proof?.method], ['tap-payer', 'web-bot-auth'])
})

test('an address outside of the ranges of its card is a fact and no contradiction', async () => {
  const ranges = new AddressRanges([parseAddressRange('198.51.100.0/24')!])
  const proofs = signed('https://shopper.test', { card: cardWith(), registries: [], ranges })
  const at = (address: string) => judged({ userAgent: 'Buyer/1', address, proofs })
  const kinds = ({ evidence }: Verdict) => evidence.map(({ kind }) => kind)
  const outside = at('8.8.8.8')
  assert.ok(kinds(outside).includes('outside-card-ranges'))
  assert.match(
    detail(outside, 'outside-card-ranges'),
    /not in the ranges of the card of https:\/\/shopper\.test$/,
  )
  assert.deepEqual([outside.conflicts, outside.proof?.method], [[], 'web-bot-auth'])
  for (const address of ['198.51.100.7', '10.0.0.1', ''])
    assert.ok(!kinds(at(address)).includes('outside-card-ranges'), address)
})

interface Said {
  readonly userAgent: string
  readonly address?: string
  readonly ja4?: string
  readonly proofs: Proofs
  readonly conduct?: Conduct
}

function judged({
  userAgent,
  address = '',
  ja4,
  proofs,
  conduct = new Conduct(null, '', address),
}: Said): Verdict {
  const rawHeaders = ['Host', 'a.test', ...(userAgent === '' ? [] : ['User-Agent', userAgent])]
  const head = { method: 'GET', target: '/', version: '11', rawHeaders } as const
  const connection = ja4 === undefined ? NOTHING_KNOWN : { ...NOTHING_KNOWN, ja4: ja4 as Ja4, noHello: null }
  return classify(
    KNOWLEDGE,
    { print: { connection, ja4h: null }, head, conduct, nowMs: NOW_MS },
    proofs,
    SCRATCH,
  )
}

function signed(agentId: string, about: SignerFacts | null = null): Proofs {
  const signature: SignatureFinding = { kind: 'proven', agentId, thumbprint: 'k'.repeat(43), about }
  return { signature, places: null }
}

function at(place: Partial<PlaceFinding>): Proofs {
  const finding = { hosts: [], isHostKnown: 'hosts' in place, network: null, ...place }
  return { signature: null, places: { of: () => finding } }
}

function detail({ evidence }: Verdict, kind: string): string {
  return evidence.find((each) => each.kind === kind)?.detail ?? ''
}

function agent(id: string, name: string, verification: object, signatures: readonly object[]) {
  const own = signatures.map((each) => ({ ...each, ...SOURCE }))
  return { id, name, kind: 'agent', category: 'custom', verification, signatures: own }
}
