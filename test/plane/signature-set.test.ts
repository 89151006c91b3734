import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { buildSignatureIndex, IndexBuilder } from '../../src/classify/known/index/index-builder.ts'
import { compileKnowledge, fingerprintsOf, type Knowledge } from '../../src/classify/known/knowledge.ts'
import { SignatureIndex } from '../../src/classify/known/index/signature-index.ts'
import { parseSoftwareList, type Software } from '../../src/classify/known/software.ts'
import { parseWeights } from '../../src/classify/known/weights.ts'
import type { Ja4h } from '../../src/fingerprint/ja4plus/ja4h.ts'
import type { ConnectionPrint } from '../../src/fingerprint/print.ts'
import { ListCopies } from '../../src/runtime/list-copies.ts'
import { loadBuiltin } from '../../src/runtime/signatures/signature-files.ts'
import { KnowledgeReader, makeSignatureSet, type SignatureSet } from '../../src/plane/signature-set.ts'
import { makeSnapshot, type Snapshot } from '../../src/plane/snapshot.ts'
import { SnapshotReader } from '../../src/plane/snapshot-reader.ts'
import { decide } from '../../src/policy/decide.ts'
import { FACTS } from '../policy/request-facts.ts'
import { Address } from '../../src/wire/address-ranges.ts'

const WEIGHTS = { temperature: 1, bias: { agent: 0, automation: 0, human: 0 }, weights: {} }
const JA4 = 't13d5212h1_b262b3658495_8e6e362c5eac'

/** As the sender of a set makes it. */
function hashOf({
  weights,
  fingerprints,
  pieces,
}: Pick<SignatureSet, 'weights' | 'fingerprints' | 'pieces'>): string {
  const said = [JSON.stringify(weights), fingerprints, ...pieces]
  return createHash('sha256').update(said.join('')).digest('hex')
}

/** The sets of one gateway, as they come. */
class Sets {
  readonly #folder: string
  #newest: SignatureSet | null = null

  constructor(folder: string) {
    this.#folder = folder
  }

  async make(list: readonly Software[], weights: unknown): Promise<SignatureSet> {
    const fingerprints = new IndexBuilder()
    for (const signature of fingerprintsOf(list)) fingerprints.add(signature)
    const content = { list, fingerprints, weights }
    this.#newest = (await makeSignatureSet(content, this.#folder, this.#newest?.hash ?? null)) ?? this.#newest
    return this.#newest!
  }
}

test('what was half written when its writer was killed is gone with the next start, and only then', async (t) => {
  const folder = temporaryFolder(t)
  const leave = () => {
    for (const name of ['a.index.x.tmp', 'newest.snapshot.x.tmp', 'newest.snapshot'])
      writeFileSync(join(folder, name), '')
  }
  const sets = new Sets(folder)
  leave()
  const { hash } = await sets.make(software(3), WEIGHTS)
  assert.deepEqual(readdirSync(folder).toSorted(), [`${hash}.index`, 'newest.snapshot'].toSorted())
  leave()
  await sets.make(software(4), WEIGHTS)
  assert.equal(readdirSync(folder).length, 5)
})

test('what was made is what is read, and made once', async (t) => {
  const sets = new Sets(temporaryFolder(t))
  const reader = new KnowledgeReader()
  const set = await sets.make(software(300), WEIGHTS)
  const knowledge = await reader.read(structuredClone(set))
  assert.deepEqual(
    knowledge.list.map(({ id, name, kind }) => [id, name, kind]),
    software(300).map(({ id, name, kind }) => [id, name, kind]),
  )
  assert.deepEqual(
    knowledge.fingerprints.find('ja4', JA4, 'exact').map(({ software }) => knowledge.list[software]!.id),
    ['s000'],
  )
  assert.equal(knowledge.userAgents.claim('s299/1.0').software?.id, 's299')
  assert.equal(await reader.read(set), knowledge)
  assert.equal(await sets.make(software(300), WEIGHTS), set, 'nothing has changed')
})

test('where it was made, it is the same without being read', async (t) => {
  const set = await new Sets(temporaryFolder(t)).make(await loadBuiltin(new ListCopies()), WEIGHTS)
  const here = await new KnowledgeReader().read(set)
  const there = await new KnowledgeReader().read(structuredClone(set))
  assert.deepEqual(here.list, there.list)
  assert.ok(here.list.length > 1000)
})

test('a fingerprint that decides travels, and others do not', async (t) => {
  const source = { source: 'accepted', date: '2026-11-21' }
  const signatures = [
    { ja4: JA4, decisive: true, ...source },
    { ja4: JA4.replace('8e6e362c5eac', '000000000001'), ...source },
  ]
  const agent = { id: 'one', name: 'One', kind: 'agent', category: 'custom', signatures }
  const set = await new Sets(temporaryFolder(t)).make(parseSoftwareList([agent]), WEIGHTS)
  const { list } = await new KnowledgeReader().read(structuredClone(set))
  const values = list[0]!.signatures.map((each) => ('isDecisive' in each ? each.value : null))
  assert.deepEqual(values, [JA4])
})

test('the set has the hellos of signing agents, so those of others are foreign', async (t) => {
  const source = { source: 'measured here', date: '2026-11-21' }
  const signing = {
    ...{ id: 'one', name: 'One', kind: 'agent', category: 'custom' },
    verification: { signature_agent: 'https://one.test' },
    signatures: [{ ja4: JA4, ...source }],
  }
  const library = { id: 'lib', name: 'lib', kind: 'tool', signatures: [{ ja4: JA4, ...source }] }
  const set = await new Sets(temporaryFolder(t)).make(parseSoftwareList([signing, library]), WEIGHTS)
  const { identities, list } = await new KnowledgeReader().read(structuredClone(set))
  assert.deepEqual(identities.lookingLike(list[0]!), new Set(['one', 'lib']))
  assert.deepEqual(identities.lookingLike(list[1]!), new Set())
})

test('of what a proxy is told, it knows as much as who reads the files', async (t) => {
  const source = { source: 'measured here', date: '2026-11-21', observations: 3 }
  const names = 'ge11cn110000_a1b2c3d4e5f6'
  const [ja4s, mine, yours] = [
    't130200_1301_234ea6891581',
    `${names}_${'1'.repeat(12)}`,
    `${names}_${'2'.repeat(12)}`,
  ]
  const tool = (id: string, ...own: object[]) => {
    const signatures = [{ ja4: JA4, ...source }, ...own.map((each) => ({ ...each, ...source }))]
    return { id, name: id, kind: 'tool', signatures }
  }
  const list = parseSoftwareList([
    tool('one', { ja4s }, { ja4h: `${mine}_*` }),
    tool('two', { ja4s: 't130300_*_*' }, { ja4h: `${yours}_*` }),
  ])
  const connection = { ja4: JA4, ja4s, stable: null, traits: null, ja4x: null, http2: null, noHello: null }
  const own = { ...connection, ja4Source: 'own' } as unknown as ConnectionPrint
  const owners = (knowledge: Knowledge, ja4h: string) =>
    knowledge.owners
      .ofHeaders({ connection: own, ja4h: ja4h as Ja4h })
      .shares.map(({ software }) => software.id)
  const told = await new KnowledgeReader().read(
    structuredClone(await new Sets(temporaryFolder(t)).make(list, WEIGHTS)),
  )
  const read = compileKnowledge(
    list,
    parseWeights(WEIGHTS),
    SignatureIndex.open(buildSignatureIndex(fingerprintsOf(list), [1, 2]).buffer),
  )
  for (const knowledge of [read, told]) {
    assert.deepEqual(
      knowledge.stacks.stackOf(own).shares.map(({ software }) => software.id),
      ['one'],
    )
    assert.deepEqual(owners(knowledge, `${mine}_${'3'.repeat(12)}`), ['one'])
    assert.deepEqual(owners(knowledge, `${yours}_${'4'.repeat(12)}`), ['two'])
  }
})

test('who names itself by another name, or as in robots.txt, is known to a proxy, too', async (t) => {
  const agent = { id: 'one', name: 'One', kind: 'agent', category: 'crawler', vendor: 'Vendor' }
  const purpose = [{ is: 'search', source: 'one.test', date: '2026-11-21' }]
  const list = parseSoftwareList([{ ...agent, aliases: ['Other'], robots_token: 'Third-Bot', purpose }])
  const set = await new Sets(temporaryFolder(t)).make(list, WEIGHTS)
  const told = await new KnowledgeReader().read(structuredClone(set))
  for (const name of ['One', 'Other', 'Third-Bot'])
    assert.equal(told.userAgents.claim(`${name}/1.0`).called?.id, 'one', name)
  const [{ robotsToken, vendor, purposes } = assert.fail()] = told.list
  assert.deepEqual([robotsToken, vendor, purposes], ['Third-Bot', 'Vendor', ['search']])
})

test('a proxy is told of published addresses, and new ones are another set', async (t) => {
  const agents = (prefix: string, url = 'https://bot.test/ips.json') => {
    const ranges = { source: 'bot.test', date: '2026-11-21', partial: true, prefixes: [prefix] }
    const agent = { kind: 'agent', category: 'crawler' }
    const others = { reverse_dns: ['.bot.test'], signature_agent: 'https://bot.test' }
    return parseSoftwareList([
      { id: 'bot', name: 'Bot', ...agent, verification: { ranges_url: url, ranges, ...others } },
      { id: 'bot-image', name: 'Image', ...agent, verification: { ranges_url: url } },
    ])
  }
  const sets = new Sets(temporaryFolder(t))
  const reader = new KnowledgeReader()
  const address = new Address()
  const listed = async (prefix: string, text: string) => {
    const { addresses } = await reader.read(structuredClone(await sets.make(agents(prefix), WEIGHTS)))
    address.read(text)
    return addresses.with(address).map(({ software, published }) => [software.id, published.isPartial])
  }
  const both = [
    ['bot', true],
    ['bot-image', true],
  ]
  assert.deepEqual(await listed('192.0.2.0/24', '192.0.2.7'), both)
  assert.deepEqual(await listed('198.51.100.0/24', '192.0.2.7'), [])
  assert.deepEqual(await listed('198.51.100.0/24', '198.51.100.7'), both)
})

test('a proxy is told of every way in which agents prove who they are', async (t) => {
  const verification = {
    ...{ reverse_dns: ['.bot.test'], asns: [64500], signature_agent: 'https://bot.test' },
  }
  const list = parseSoftwareList([
    { id: 'bot', name: 'Bot', kind: 'agent', category: 'crawler', verification },
  ])
  const told = await new KnowledgeReader().read(
    structuredClone(await new Sets(temporaryFolder(t)).make(list, WEIGHTS)),
  )
  assert.deepEqual(told.list[0]!.verification, list[0]!.verification)
  assert.equal(told.identities.byPlace('bot')!.id, 'bot')
  assert.deepEqual(told.identities.signers, ['https://bot.test'])
})

test('no proxy keeps what only people read, nor fingerprints twice', async (t) => {
  const source = { source: 'measured here', date: '2026-11-21' }
  const signatures = [
    { user_agent: 'curl/', ...source },
    { ja4: JA4, ...source },
  ]
  const said = { description: 'of URLs', vendor: 'curl', homepage: 'https://curl.se' }
  const list = parseSoftwareList([{ id: 'curl', name: 'curl', kind: 'tool', ...said, signatures }])
  const set = await new Sets(temporaryFolder(t)).make(list, WEIGHTS)
  const [curl] = (await new KnowledgeReader().read(structuredClone(set))).list
  const { name, description, vendor, homepage } = curl!
  assert.deepEqual([name, description, vendor, homepage], ['curl', null, null, null])
  assert.deepEqual(
    curl!.signatures.map(({ type }) => type),
    ['user-agent'],
  )
})

test('other fingerprints make another set', async (t) => {
  const sets = new Sets(temporaryFolder(t))
  const hashes = new Set<string>()
  const source = { source: 'measured here', date: '2026-11-21' }
  for (const signature of [{ ja4: JA4 }, { ja4: JA4, observations: 1 }, { ja4: `*${JA4.slice(10)}` }]) {
    const list = [{ id: 'x', name: 'x', kind: 'tool', signatures: [{ ...signature, ...source }] }]
    hashes.add((await sets.make(parseSoftwareList(list), WEIGHTS)).hash)
  }
  assert.equal(hashes.size, 3)
})

test('a later set takes the place of the one before', async (t) => {
  const folder = temporaryFolder(t)
  const sets = new Sets(folder)
  const used: Snapshot[] = []
  const reader = new SnapshotReader((snapshot) => used.push(snapshot))
  for (let number = 1; number <= 4; number++) {
    const set = await sets.make(software(100 + number), WEIGHTS)
    await reader.read(makeSnapshot(number, { rules: [] }, 0, set))
    const { knowledge } = used.at(-1)!
    assert.equal(knowledge!.list.length, 100 + number)
    assert.equal(knowledge!.fingerprints.find('ja4', JA4, 'exact').length, 1)
  }
  assert.deepEqual(
    used.map(({ number }) => number),
    [1, 2, 3, 4],
  )
  assert.equal(readdirSync(folder).length, 2, 'the files of the newest two are kept')
})

test('a policy that changes takes the knowledge over; documents are used in their order', async (t) => {
  const sets = new Sets(temporaryFolder(t))
  const used: Snapshot[] = []
  const reader = new SnapshotReader((snapshot) => used.push(snapshot))
  const set = await sets.make(software(500), WEIGHTS)
  await reader.read(makeSnapshot(1, { rules: [] }, 0, set))
  const later = [2, 3, 4].map((number) => reader.read(makeSnapshot(number, { rules: [] }, 0, set)))
  await Promise.all(later)
  assert.equal(used.at(-1)!.number, 4)
  assert.equal(used.at(-1)!.knowledge, used[0]!.knowledge)
})

test('a policy is compiled again where the signatures are others, and by their names', async (t) => {
  const sets = new Sets(temporaryFolder(t))
  const used: Snapshot[] = []
  const reader = new SnapshotReader((snapshot) => used.push(snapshot))
  const policy = { rules: [{ name: 'no-bots', when: { agent: 'the-bot' }, action: 'block' }] }
  const rulesFor = (id: string) => {
    const agent = { id, name: id, category: 'crawler', purposes: [] }
    return decide(used.at(-1)!.policy, { ...FACTS, verdict: { ...FACTS.verdict, agent } }, 0).rule
  }
  const setOf = async (id: string, aliases: readonly string[]) =>
    sets.make(parseSoftwareList([{ id, name: id, kind: 'agent', category: 'crawler', aliases }]), WEIGHTS)
  const unknown = await setOf('first', ['else'])
  await reader.read(makeSnapshot(1, policy, 0, unknown))
  assert.deepEqual([rulesFor('first'), rulesFor('the-bot')], ['otherwise', 'no-bots'])
  await reader.read(makeSnapshot(2, policy, 0, await setOf('first', ['The Bot'])))
  assert.deepEqual([rulesFor('first'), rulesFor('second')], ['no-bots', 'otherwise'])
  const last = await setOf('second', ['the-bot'])
  await reader.read(makeSnapshot(3, policy, 0, last))
  assert.deepEqual([rulesFor('first'), rulesFor('second')], ['otherwise', 'no-bots'])
  // The same signatures, and another policy.
  await reader.read(makeSnapshot(4, { rules: [{ ...policy.rules[0], name: 'other' }] }, 0, last))
  assert.deepEqual([rulesFor('first'), rulesFor('second')], ['otherwise', 'other'])
  assert.equal(used[2]!.knowledge, used[3]!.knowledge)
})

test('what cannot be used leaves what is in use', async (t) => {
  const folder = temporaryFolder(t)
  const sets = new Sets(folder)
  const used: Snapshot[] = []
  const reader = new SnapshotReader((snapshot) => used.push(snapshot))
  const set = await sets.make(software(100), WEIGHTS)
  await reader.read(makeSnapshot(1, { rules: [] }, 0, set))
  const other = await sets.make(software(101), WEIGHTS)
  // Whole, as its hash says, and all the same nothing that can be read.
  const noJson = { ...other, pieces: ['[{"id"'], hash: hashOf({ ...other, pieces: ['[{"id"'] }) }
  const bad = [
    { ...other, pieces: ['[{"id": "x"}]'] },
    { ...other, pieces: other.pieces.slice(1) },
    { ...other, weights: { temperature: 0 } },
    { ...other, index: { ...other.index, sha256: 'ab'.repeat(32) } },
    { ...other, index: { ...other.index, path: join(folder, 'not-there') } },
    { ...other, fingerprints: 'ab'.repeat(32) },
    { ...other, index: 7 },
    noJson,
  ]
  for (const signatures of bad) {
    const document = { ...makeSnapshot(2, { rules: [] }, 0), signatures } as never
    await assert.rejects(reader.read(document), { name: 'Fault' })
  }
  writeFileSync(other.index.path, 'no index')
  await assert.rejects(reader.read(makeSnapshot(3, { rules: [] }, 0, other)), { name: 'Fault' })
  assert.equal(used.length, 1)
  const third = await sets.make(software(102), WEIGHTS)
  await reader.read(makeSnapshot(4, { rules: [] }, 0, third))
  assert.equal(used.at(-1)!.number, 4)
})

test('invalid weights are refused before anything is written', async (t) => {
  const folder = temporaryFolder(t)
  await assert.rejects(new Sets(folder).make(software(1), { temperature: 'warm' }), {
    code: 'WEIGHTS_INVALID',
  })
  assert.deepEqual(readdirSync(folder), [])
})

function software(count: number) {
  const source = { source: 'made for this test', date: '2026-11-21' }
  return parseSoftwareList(
    Array.from({ length: count }, (_, index) => {
      const id = `s${String(index).padStart(3, '0')}`
      const signatures = [
        { user_agent: `${id}/`, ...source },
        ...(index === 0 ? [{ ja4: JA4, ...source }] : []),
      ]
      return { id, name: id, kind: 'tool', signatures }
    }),
  )
}

function temporaryFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-sets-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}
