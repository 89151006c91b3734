import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { catalogueRows } from '../../src/runtime/signatures/catalogue-rows.ts'
import type { Knowledge } from '../../src/classify/known/knowledge.ts'
import { agentEvidence } from '../../src/manage/judging/agent-evidence.ts'
import { logOdds, type Reason, signatureEvidence } from '../../src/manage/judging/evidence.ts'
import type { JudgingContext } from '../../src/manage/judging/context.ts'
import type { SignatureFilter } from '../../src/store/catalogue/catalogue-lists.ts'
import type { KnownSignature } from '../../src/store/catalogue/known-signature.ts'
import type { NewSignature } from '../../src/store/catalogue/catalogue.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import type { Position, StretchOf } from '../../src/store/engine/page.ts'
import type { Store } from '../../src/store/store.ts'
import { JA4, signatureOf, softwareOf } from '../contract/catalogue.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'

const ALL: SignatureFilter = {
  ...{ type: null, unknownOnly: false, softwareId: null, text: null, confidenceMin: 0 },
  sort: { by: 'fingerprint', isDescending: false },
}
const DAY_MS = 86_400_000
const OTHER = JA4.replace('8daaf', '00000')

for (const kind of KINDS) {
  test(`${kind}: the evidence of every signature that comes with Gatehouse adds up to its confidence`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    const rows = await catalogueRows({ feeds: [], paths: [] })
    await store.catalogueMerge.merge(rows, { hash: 'x', nowMs: 1, pause: async () => undefined })
    let after: Position | null = null
    let count = 0
    do {
      const { items, next }: StretchOf<KnownSignature> = await store.catalogueLists.signatures(ALL, {
        after,
        limit: 200,
      })
      const evidence = await signatureEvidence(items, managementOf(store))
      for (const [index, { confidence, value }] of items.entries()) {
        const reasons = evidence[index]!
        assert.ok(reasons.length > 0, value)
        assertAddsUp(reasons, confidence, value)
        assertStrongestFirst(reasons)
        count++
      }
      after = next
    } while (after !== null)
    assert.ok(count > 100, String(count))
    const { items } = await store.catalogueLists.agents(
      { category: null, purpose: null, text: null, seenSinceMs: null, ids: null },
      { after: null, limit: 200 },
    )
    const agents = await agentEvidence(
      items.map(({ id }) => id),
      managementOf(store),
      '*',
    )
    assert.equal(agents.size, items.length)
    for (const reasons of agents.values()) assertStrongestFirst(reasons)
  })

  test(`${kind}: a signature says where it was measured, who else has it, and what was seen and told`, async (t) => {
    const { store, add, see, tell, evidenceOf } = await filled(t, kind)
    await add({ softwareId: 'acme', observations: 8, provenance: 'our lab' })
    assert.deepEqual(await evidenceOf(JA4, 'acme'), [
      {
        kind: 'measured',
        detail: 'measured on 8 connections or requests: our lab',
        weight: rounded(Math.log(9)),
      },
      { kind: 'accepted', detail: 'accepted on 2023-11-14: our lab', weight: 0 },
    ])
    await add({ softwareId: 'curl', observations: 2 })
    for (const id of ['tool-1', 'tool-2', 'tool-3', 'tool-4']) await add({ softwareId: id, observations: 1 })
    await add({ softwareId: '', status: 'unknown', source: 'observed', observations: 99 })
    await see(JA4, 1_200)
    await tell('one', 'human', null)
    await tell('two', 'agent', 'acme')
    await tell('three', 'agent', null)
    await tell('four', 'agent', 'other')
    assert.deepEqual(await evidenceOf(JA4, 'acme'), [
      {
        kind: 'shared',
        detail: 'also measured on other software: curl (2), tool-1 (1), tool-2 (1), tool-3 (1) and 1 more',
        weight: rounded(-Math.log(1 + 3 + 4 * 2)),
      },
      {
        kind: 'measured',
        detail: 'measured on 8 connections or requests: our lab',
        weight: rounded(Math.log(9)),
      },
      { kind: 'accepted', detail: 'accepted on 2023-11-14: our lab', weight: 0 },
      { kind: 'seen-live', detail: '1,200 requests on live traffic, the last on 1970-01-02', weight: 0 },
      { kind: 'reported-human', detail: 'operators say of 1 request with it: a person’s', weight: 0 },
      { kind: 'reported-other', detail: 'operators say of 1 request with it: another agent’s', weight: 0 },
      { kind: 'reported-agent', detail: 'operators say of 2 requests with it: an agent’s', weight: 0 },
    ])
    const { items } = await store.catalogueLists.signatures(ALL, { after: null, limit: 50 })
    const all = await signatureEvidence(items, managementOf(store))
    for (const [index, { confidence, value }] of items.entries()) assertAddsUp(all[index]!, confidence, value)
    assert.deepEqual(
      (await evidenceOf(JA4, '')).map(({ kind: each }) => each),
      ['unknown', 'measured', 'shared', 'seen-live', 'reported-human', 'reported-agent'],
      'of nobody',
    )
  })

  test(`${kind}: what judges nothing says so, and what decides`, async (t) => {
    const { store, add, see, evidenceOf } = await filled(t, kind)
    await add({ softwareId: 'acme', status: 'trial', observations: 3 })
    const trial = await evidenceOf(JA4, 'acme')
    assert.deepEqual(
      trial.map(({ kind: each, weight }) => [each, weight]),
      [
        ['measured', rounded(Math.log(4))],
        ['on-trial', 0],
      ],
    )
    await see(OTHER, 7)
    const [unknown] = await store.catalogueLookup.exact([{ type: 'ja4', value: OTHER }])
    const [reasons] = await signatureEvidence([unknown!], managementOf(store))
    assert.deepEqual(
      reasons!.map(({ kind: each, weight }) => [each, weight]),
      [
        ['unknown', rounded(logOdds(0))],
        ['seen-live', 0],
      ],
    )
    await add({ softwareId: 'acme', value: OTHER })
    const decisive = softwareOf({
      ...{ id: 'acme', name: 'Acme' },
      signatures: [{ ja4: OTHER, decisive: true, source: 'us', date: '2026-11-21' }],
    })
    const [found] = await store.catalogueLookup.exact([{ type: 'ja4', value: OTHER }])
    const management = managementOf(store, { list: [decisive] } as unknown as Knowledge)
    const [deciding] = await signatureEvidence([found!], management)
    assert.ok(deciding!.some((each) => each.kind === 'decides' && each.detail.endsWith('Acme')))
    assert.ok(!(await evidenceOf(OTHER, 'acme')).some((each) => each.kind === 'decides'))
    assert.deepEqual(await signatureEvidence([], management), [])
  })

  test(`${kind}: an agent says what it is known by`, async (t) => {
    const { store, db, add } = await filled(t, kind)
    await add({ softwareId: 'acme', observations: 8 })
    await add({ softwareId: 'acme', value: OTHER, status: 'trial', observations: 99 })
    await db
      .insertInto('agents_seen')
      .values({ software_id: 'acme', first_seen_ms: 1, last_seen_ms: DAY_MS, requests: 3 })
      .execute()
    const evidence = await agentEvidence(['acme', 'curl', 'unknown', "x' --"], managementOf(store), '*')
    assert.deepEqual(evidence.get('acme'), [
      {
        kind: 'fingerprints',
        detail: '1 fingerprint of the type ja4, the surest with a confidence of 0.900',
        weight: rounded(Math.log(9)),
      },
      { kind: 'goes-by', detail: 'goes by acmebot in User-Agents', weight: 0 },
      { kind: 'verifiable', detail: 'can be verified by reverse-dns (.acme.example)', weight: 0 },
      { kind: 'seen-live', detail: '3 requests on live traffic, the last on 1970-01-02', weight: 0 },
    ])
    assert.deepEqual(evidence.get('curl'), [])
    assert.equal(evidence.size, 2)
    assert.equal((await agentEvidence([], managementOf(store), '*')).size, 0)
  })
}

async function filled(t: Test, kind: (typeof KINDS)[number]) {
  const url = await freshUrl(kind, t)
  const store = await openAt(t, url)
  const { db, close } = await openDatabase(url, null, async () => undefined)
  t.teardown(close)
  await store.transaction(async (queries) => {
    const acme = {
      ...{ id: 'acme', name: 'Acme', verification: { reverse_dns: ['.acme.example'] } },
      signatures: [{ user_agent: 'acmebot', source: 'us', date: '2026-11-21' }],
    }
    await store.catalogue.addSoftware(softwareOf(acme), 1, queries)
    for (const id of ['curl', 'tool-1', 'tool-2', 'tool-3', 'tool-4'])
      await store.catalogue.addSoftware(softwareOf({ id, name: id, kind: 'tool' }), 1, queries)
  })
  return {
    store,
    db,
    add: (given: Partial<NewSignature>) =>
      store.transaction((queries) => store.catalogue.addSignature(signatureOf(given), queries)),
    see: (value: string, requests: number) =>
      db
        .insertInto('fingerprints_seen')
        .values({
          ...{ type: 'ja4', value, requests, first_seen_ms: 1, last_seen_ms: DAY_MS },
          ...{ addresses: 1, sketch: '', is_named: 1, rank: 1 },
        })
        .execute(),
    tell: (decisionId: string, told: 'agent' | 'human', toldSoftwareId: string | null) =>
      store.transaction((queries) =>
        store.feedback.put(
          {
            ...{ id: decisionId, decisionId, atMs: 1, principal: 'p', told, toldSoftwareId },
            ...{ verdict: 'agent', verdictSoftwareId: null, fingerprints: [{ type: 'ja4', value: JA4 }] },
          },
          queries,
        ),
      ),
    evidenceOf: async (value: string, softwareId: string): Promise<readonly Reason[]> => {
      const { items } = await store.catalogueLists.signatures(ALL, { after: null, limit: 50 })
      const index = items.findIndex(
        (each) => each.value === value && (each.software?.id ?? '') === softwareId,
      )
      return (await signatureEvidence(items, managementOf(store)))[index]!
    },
  }
}

function managementOf(store: Store, knowledge: Knowledge | null = null): JudgingContext {
  return { store, snapshot: () => (knowledge === null ? null : { knowledge }) } as unknown as JudgingContext
}

/** Each weight is rounded. */
function assertAddsUp(reasons: readonly Reason[], confidence: number, title: string): void {
  const sum = reasons.reduce((total, { weight }) => total + weight, 0)
  assert.ok(Math.abs(sum - logOdds(confidence)) < 1e-3, `${title}: ${sum} for ${confidence}`)
}

function assertStrongestFirst(reasons: readonly Reason[]): void {
  const weights = reasons.map(({ weight }) => Math.abs(weight))
  assert.deepEqual(
    weights,
    weights.toSorted((one, other) => other - one),
  )
}

function rounded(weight: number): number {
  return Math.round(weight * 1e4) / 1e4
}
