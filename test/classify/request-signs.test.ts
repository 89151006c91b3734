import assert from 'node:assert/strict'
import { createReadStream } from 'node:fs'
import { test } from 'tap'
import {
  CAMPAIGNS_MAX,
  type CampaignList,
  campaignMembers,
  MEMBERS_MAX,
} from '../../src/classify/campaign/members.ts'
import { REQUEST_KIND } from '../../src/classify/campaign/seen-request.ts'
import type { CorpusRow } from '../../src/classify/known/corpus.ts'
import { classify } from '../../src/classify/verdict/classify.ts'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import { NO_PROOFS } from '../../src/classify/verdict/proof.ts'
import { Scratch } from '../../src/classify/verdict/scratch.ts'
import { readCorpus } from '../../src/commands/record/corpus-file.ts'
import { networkHash } from '../../src/manage/intake/sighting-intake.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'

const knowledge = await loadKnowledge(null, null)
const rows: CorpusRow[] = []
for await (const { row } of readCorpus(createReadStream('test/classify/recorded.jsonl'), (_, fault) => {
  throw fault
}))
  rows.push(row)
const chromium = rowOf('chromium', 'human-browser')
const ADDRESS = '198.51.100.7'

interface Change {
  readonly target?: string
  /** Headers that replace, or with `null` remove, those of the browser. */
  readonly headers?: Readonly<Record<string, string | null>>
}

test('a page, a page that another one led to, and parts of pages', async () => {
  const kindOf = (headers: NonNullable<Change['headers']>) => signsOf({ headers }).kind
  assert.equal(kindOf({}), REQUEST_KIND.page)
  assert.equal(kindOf({ 'sec-fetch-site': 'cross-site', referer: 'https://search.test/' }), REQUEST_KIND.page)
  assert.equal(kindOf({ 'sec-fetch-site': 'same-origin' }), REQUEST_KIND.followed)
  assert.equal(kindOf({ 'sec-fetch-site': 'same-site' }), REQUEST_KIND.followed)
  assert.equal(kindOf({ 'sec-fetch-site': null, referer: 'https://a.test/' }), REQUEST_KIND.followed)
  assert.equal(kindOf({ 'sec-fetch-site': null }), REQUEST_KIND.page)
  assert.equal(kindOf({ 'sec-fetch-dest': 'image' }), REQUEST_KIND.part)
  assert.equal(kindOf({ 'sec-fetch-dest': 'empty', accept: '*/*' }), REQUEST_KIND.part)
  assert.equal(kindOf({ 'sec-purpose': 'prefetch' }), REQUEST_KIND.other)
})

test('the icon that a browser asks for itself is not a part of a page', async () => {
  const headers = { 'sec-fetch-dest': 'image' }
  const kindOf = (target: string) => signsOf({ target, headers }).kind
  assert.equal(kindOf('/favicon.ico'), REQUEST_KIND.other)
  assert.equal(kindOf('/favicon.ico?v=2'), REQUEST_KIND.part)
  assert.equal(kindOf('/shop/favicon.ico'), REQUEST_KIND.part)
})

test('only claimed browsers show signs, and the signs of one request are not those of the next', async () => {
  const scratch = new Scratch()
  signsOf({}, scratch)
  assert.notEqual(scratch.signs.program, 0)
  signsOf({ headers: { 'user-agent': 'curl/8.14.1' } }, scratch)
  assert.deepEqual({ ...scratch.signs }, { kind: REQUEST_KIND.other, program: 0, order: 0, target: 0 })
})

test('what depends on the page does not change the order, but a cookie does', async () => {
  const { order, program } = signsOf({})
  for (const headers of [
    { referer: 'https://a.test/' },
    { 'cache-control': 'max-age=0' },
    { pragma: 'no-cache' },
  ])
    assert.deepEqual([signsOf({ headers }).order, signsOf({ headers }).program], [order, program])
  assert.notEqual(signsOf({ headers: { cookie: 'a=b' } }).order, order)
  assert.notEqual(signsOf({ headers: { 'accept-language': null } }).order, order)
})

test('another version, browser or TLS is another program', async () => {
  const { program } = signsOf({})
  const userAgent = headOf(chromium).rawHeaders.find((text) => text.startsWith('Mozilla/'))!
  const older = userAgent.replace(/Chrome\/\d+/, 'Chrome/120')
  assert.notEqual(older, userAgent)
  assert.notEqual(signsOf({ headers: { 'user-agent': older } }).program, program)
  assert.notEqual(signsOf({}, new Scratch(), rowOf('impit', 'spoofed-browser')).program, program)
})

test('the query is part of the page', async () => {
  assert.notEqual(signsOf({ target: '/list?page=1' }).target, signsOf({ target: '/list?page=2' }).target)
})

test('a page of a member is evidence, which alone does not make a person an agent', async () => {
  const before = judged({}, null)
  const { program } = signsOf({})
  const members = [networkHash(ADDRESS, 9)]
  const list = { salt: 9, campaigns: [{ id: 'cmp_1', program, members }] }
  const { verdict, campaign } = judged({}, list)
  assert.equal(campaign, 'cmp_1')
  assert.ok(verdict.evidence.some(({ kind, weight }) => kind === 'campaign' && weight < 0))
  assert.deepEqual([verdict.kind, before.verdict.kind], ['human', 'human'])
  assert.ok(verdict.confidence < before.verdict.confidence)
  const others: readonly [Change, CampaignList][] = [
    [{ headers: { 'sec-fetch-dest': 'image' } }, list],
    [{ headers: { 'sec-fetch-site': 'same-origin' } }, list],
    [{}, { salt: 9, campaigns: [{ id: 'cmp_1', program: program + 1, members }] }],
    [{}, { salt: 9, campaigns: [{ id: 'cmp_1', program, members: [1] }] }],
    [{}, { salt: 8, campaigns: [{ id: 'cmp_1', program, members }] }],
  ]
  for (const [change, other] of others) assert.equal(judged(change, other).campaign, null)
})

test('an invalid list of campaigns is ignored', async () => {
  const good = { id: 'cmp_1', program: 1, members: [1] }
  const bad = [
    undefined,
    null,
    1,
    {},
    { salt: 1 },
    { salt: 1, campaigns: [] },
    { salt: 'x', campaigns: [good] },
  ]
  const worse = [
    ...[null, 'x', [], { ...good, id: 1 }, { ...good, program: 'x' }, { ...good, members: null }],
    ...['', 'cmp_', 'cmp_a\r\nX-Agent: x', `cmp_${'a'.repeat(61)}`, 'evt_1'].map((id) => ({ ...good, id })),
    ...[-1, 1.5, 2 ** 32, null].map((program) => ({ ...good, program })),
    ...[-1, 1.5, 2 ** 32, Number.NaN, '1', null, [1], {}].map((one) => ({ ...good, members: [1, one] })),
    { ...good, members: { length: 1, 0: 1 } },
    { ...good, members: Array.from({ length: MEMBERS_MAX + 1 }, (_, i) => i) },
  ]
  const many = Array.from({ length: CAMPAIGNS_MAX + 1 }, (_, i) => ({ ...good, id: `cmp_${i}` }))
  for (const value of [
    { salt: -1, campaigns: [good] },
    { salt: 1, campaigns: many },
  ])
    assert.equal(campaignMembers(value), null)
  for (const each of worse) assert.equal(campaignMembers({ salt: 1, campaigns: [good, each] }), null)
  for (const value of [...bad, ...worse.map((each) => ({ salt: 1, campaigns: [each] }))])
    assert.equal(campaignMembers(value), null)
  assert.notEqual(campaignMembers({ salt: 1, campaigns: [good] }), null)
})

function rowOf(client: string, label: string): CorpusRow {
  const found = rows.find((row) => row.client === client && row.label === label && pageIn(row) !== undefined)
  assert.ok(found !== undefined, client)
  return found
}

function pageIn({ requests }: CorpusRow) {
  return requests.find(({ head }) => head.method === 'GET' && head.rawHeaders.includes('document'))
}

function headOf(row: CorpusRow) {
  return pageIn(row)!.head
}

function judged(change: Change, list: CampaignList | null, scratch = new Scratch(), row = chromium) {
  const head = headOf(row)
  const { target = '/item/1', headers = {} } = change
  const left = new Map(Object.entries({ 'sec-fetch-site': 'none', referer: null, cookie: null, ...headers }))
  const rawHeaders: string[] = []
  for (let i = 0; i < head.rawHeaders.length; i += 2) {
    const name = head.rawHeaders[i]!
    const value = left.get(name.toLowerCase())
    if (value !== null) rawHeaders.push(name, value ?? head.rawHeaders[i + 1]!)
    left.delete(name.toLowerCase())
  }
  for (const [name, value] of left) if (value !== null) rawHeaders.push(name, value)
  const request = {
    print: { connection: row.print, ja4h: null },
    head: { ...head, method: 'GET', target, rawHeaders },
    conduct: new Conduct(null, ADDRESS, ADDRESS),
    campaigns: list === null ? null : campaignMembers(list),
  }
  const verdict = classify(knowledge, request, NO_PROOFS, scratch)
  return { verdict, campaign: scratch.campaign }
}

function signsOf(change: Change, scratch = new Scratch(), row = chromium) {
  judged(change, null, scratch, row)
  const { kind, program, order, target } = scratch.signs
  return { kind, program, order, target }
}
