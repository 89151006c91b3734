import assert from 'node:assert/strict'
import { test } from 'tap'
import { parseSoftware } from '../../src/classify/known/software.ts'
import { trialCounter } from '../../src/manage/judging/submissions/trial-counter.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import type { NewSignature } from '../../src/store/catalogue/catalogue.ts'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import type { Feedback } from '../../src/store/catalogue/feedback.ts'
import type { Store } from '../../src/store/store.ts'
import type { SubmissionDecision, SubmissionRecord } from '../../src/store/catalogue/submissions.ts'
import { freshUrl, openAt, openFresh } from '../store/databases.ts'
import { sighting } from './bus.ts'

/** What is sent in, tried, and told. */
export function submissionContract(kind: DatabaseKind): void {
  test(`${kind}: a submission is found as it was, by what it is and by what is in it`, async (t) => {
    const store = await openFresh(kind, t)
    const full = submission(1, {
      ...{
        agentName: '100% Ünïcode_Agent',
        softwareId: 'acme',
        category: 'custom',
        purposes: ['agent', 'search'],
        userAgent: 'a\u00ff',
      },
      ...{ notes: 'a\n"b"', duplicateOf: 'sub_0', reasons: [{ code: 'new', detail: 'ä' }] },
    })
    await add(store, [full, submission(2, { type: 'ja4s', status: 'rejected' })])
    assert.deepEqual(await store.submissions.byId('sub_1'), full)
    assert.equal(await store.submissions.byId('sub_x'), null)
    const found = async (text: string) =>
      (await store.submissions.list({ status: null, type: null, text }, PAGE)).items.map(({ id }) => id)
    assert.deepEqual(await found('100% '), ['sub_1'])
    assert.deepEqual(await found('E_agent'), ['sub_1'])
    assert.deepEqual(await found('0_ '), [])
    assert.deepEqual(await found('ACME'), ['sub_1'])
    assert.deepEqual(await found('value_2'), ['sub_2'])
    assert.deepEqual(await found('!'), [])
    const { items, total } = await store.submissions.list(
      { status: 'rejected', type: 'ja4s', text: null },
      PAGE,
    )
    assert.deepEqual([items.map(({ id }) => id), total], [['sub_2'], 1])
  })

  test(`${kind}: of all who decide at once, one does`, async (t) => {
    const url = await freshUrl(kind, t)
    const stores = await Promise.all([openAt(t, url), openAt(t, url), openAt(t, url)])
    await add(stores[0]!, [submission(1)])
    const outcomes = await Promise.all(
      stores.map((store, number) =>
        store.transaction((queries) =>
          store.submissions.decide('sub_1', 'pending', decision({ decidedBy: `key_${number}` }), queries),
        ),
      ),
    )
    assert.deepEqual(outcomes.toSorted(), [false, false, true])
    const found = await stores[0]!.submissions.byId('sub_1')
    assert.deepEqual([found?.status, found?.decidedBy], ['accepted', `key_${outcomes.indexOf(true)}`])
  })

  test(`${kind}: those that wait are counted, for each and for all`, async (t) => {
    const store = await openFresh(kind, t)
    await add(store, [
      submission(1),
      submission(2),
      submission(3, { principal: 'key_b' }),
      submission(4, { status: 'rejected' }),
    ])
    const count = (principal: string) =>
      store.transaction((queries) => store.submissions.countWaiting(principal, queries))
    assert.deepEqual(await count('key_a'), { all: 3, own: 2 })
    assert.deepEqual(await count('unknown'), { all: 3, own: 0 })
    const waiting = await store.submissions.waiting('ja4', ['value_1', 'value_4', 'value_3'])
    assert.deepEqual(
      waiting.map(({ id }) => id),
      ['sub_1', 'sub_3'],
    )
  })

  test(`${kind}: the oldest that came to nothing are forgotten, with what was counted of them`, async (t) => {
    const store = await openFresh(kind, t)
    const records = [
      submission(1, { status: 'rejected' }),
      submission(2, { status: 'rejected' }),
      submission(3, { status: 'rejected', value: 'value_1' }),
      submission(4, { status: 'accepted' }),
      submission(5, { status: 'duplicate' }),
      submission(6),
    ]
    await add(store, records)
    await store.transaction(async (queries) => {
      await store.trials.open(records, 1, queries)
      for (const { type, value } of records) await store.trials.close(type, value, queries)
      await store.trials.forget(await store.submissions.forgetOldest(1, queries), queries)
    })
    const { items } = await store.submissions.list({ status: null, type: null, text: null }, PAGE)
    assert.deepEqual(
      items.map(({ id }) => id),
      ['sub_6', 'sub_5', 'sub_4', 'sub_3'],
    )
    const trials = await store.trials.of(
      'ja4',
      records.map(({ value }) => value),
    )
    // The third has that of the first.
    assert.deepEqual(trials.map(({ value, isOpen }) => [value, isOpen]).sort(), [
      ['value_1', false],
      ['value_4', false],
      ['value_5', false],
      ['value_6', true],
    ])
  })

  test(`${kind}: many at once are kept, and found again`, async (t) => {
    const store = await openFresh(kind, t)
    const records = Array.from({ length: 1_000 }, (_, number) => submission(number))
    await add(store, records)
    await store.transaction((queries) => store.trials.open(records, 1, queries))
    assert.equal((await store.trials.counted()).length, 1_000)
    assert.equal(
      (
        await store.submissions.waiting(
          'ja4',
          records.map(({ value }) => value),
        )
      ).length,
      1_000,
    )
  })

  test(`${kind}: what live traffic shows is counted once for each Sighting, however many count`, async (t) => {
    const url = await freshUrl(kind, t)
    const stores = await Promise.all([openAt(t, url), openAt(t, url)])
    await stores[0]!.transaction((queries) => stores[0]!.trials.open([TRIED], 1, queries))
    const counters = stores.map((store) => {
      const counter = trialCounter(store)
      return (batch: readonly Sighting[]) => store.transaction((queries) => counter(batch, queries))
    })
    await Promise.all(
      Array.from({ length: 20 }, (_, number) =>
        counters[number % 2]!([
          { ...sighting(number), ja4: TRIED.value, address: `192.0.2.${number % 5}`, verdict: 'unknown' },
          { ...sighting(number), ja4: 'another' },
        ]),
      ),
    )
    const [trial] = await stores[0]!.trials.of('ja4', [TRIED.value])
    assert.deepEqual([trial!.hits, trial!.addresses.count], [20, 5])
    assert.deepEqual(trial!.verdicts, [{ verdict: 'unknown', agentId: null, count: 20 }])
    assert.deepEqual([trial!.firstHitMs, trial!.lastHitMs], [sighting(0).seenAtMs, sighting(19).seenAtMs])
  })

  test(`${kind}: what is sent in here is counted from then on, and elsewhere a second later`, async (t) => {
    const url = await freshUrl(kind, t)
    const [here, elsewhere] = await Promise.all([openAt(t, url), openAt(t, url)])
    let nowMs = 0
    const counters = [here, elsewhere].map((store) => {
      const counter = trialCounter(store!, () => nowMs)
      const batch = [{ ...sighting(1), ja4: TRIED.value }]
      return () => store!.transaction((queries) => counter(batch, queries))
    })
    const hits = async () => (await here!.trials.of('ja4', [TRIED.value]))[0]?.hits
    for (const count of counters) await count()
    await here!.transaction((queries) => here!.trials.open([TRIED], 1, queries))
    await counters[1]!()
    assert.equal(await hits(), 0)
    await counters[0]!()
    assert.equal(await hits(), 1)
    nowMs = 1_000
    await counters[1]!()
    assert.equal(await hits(), 2)
  })

  test(`${kind}: any number of agents is counted in little room`, async (t) => {
    const store = await openFresh(kind, t)
    await store.transaction((queries) => store.trials.open([TRIED], 1, queries))
    const counter = trialCounter(store)
    const batch = Array.from({ length: 500 }, (_, number) => {
      return { ...sighting(number), ja4: TRIED.value, verdict: 'agent', agent: `agent-${number}` }
    })
    await store.transaction((queries) => counter(batch, queries))
    const [trial] = await store.trials.of('ja4', [TRIED.value])
    assert.ok(trial!.verdicts.length <= 33)
    assert.equal(
      trial!.verdicts.reduce((sum, { count }) => sum + count, 0),
      500,
    )
  })

  test(`${kind}: of a decision the last word counts, once`, async (t) => {
    const store = await openFresh(kind, t)
    const put = (given: Partial<Feedback>) =>
      store.transaction((queries) => store.feedback.put(feedback(given), queries))
    await put({ told: 'human' })
    await put({ told: 'agent', toldSoftwareId: 'acme' })
    await put({ decisionId: 'another', told: 'agent', toldSoftwareId: 'acme' })
    await put({ decisionId: 'third', told: 'human', fingerprints: [{ type: 'ja4s', value: TRIED.value }] })
    await put({ decisionId: 'fourth', fingerprints: [] })
    assert.deepEqual(await store.feedback.toldOf('ja4', [TRIED.value, 'x']), [
      { value: TRIED.value, told: 'agent', softwareId: 'acme', verdict: 'human', count: 2 },
    ])
    await store.transaction((queries) => store.feedback.forgetOldest(0, queries))
    assert.deepEqual(await store.feedback.toldOf('ja4', [TRIED.value]), [])
  })

  test(`${kind}: software that accepting has made goes only when nothing is left of it`, async (t) => {
    const store = await openFresh(kind, t)
    const acme = parseSoftware({ id: 'acme', name: 'Acme', kind: 'agent', category: 'custom' })
    const signature = (value: string): NewSignature => ({
      ...{ type: 'ja4', value, softwareId: 'acme', status: 'active', source: 'submitted' },
      ...{ provenance: '', firstSeenMs: 1, observations: 1 },
    })
    await store.transaction(async (queries) => {
      await store.catalogue.addSoftware(acme, 1, queries)
      await store.catalogue.addSignature(signature('a_b_c'), queries)
      await store.catalogue.addSignature(signature('d_e_f'), queries)
      await store.catalogue.setStatus(signature('a_b_c'), 'retired', queries)
      await store.submissions.forgetMade('acme', queries)
    })
    assert.equal((await store.catalogue.softwareNamed('Acme'))?.id, 'acme')
    await store.transaction(async (queries) => {
      await store.catalogue.setStatus(signature('d_e_f'), 'retired', queries)
      await store.submissions.forgetMade('acme', queries)
    })
    assert.equal(await store.catalogue.softwareNamed('Acme'), null)
    assert.deepEqual(await store.catalogue.signaturesOf('ja4', 'a_b_c'), [])
  })
}

function add(store: Store, records: readonly SubmissionRecord[]): Promise<void> {
  return store.transaction((queries) => store.submissions.add(records, queries))
}

function submission(number: number, given: Partial<SubmissionRecord> = {}): SubmissionRecord {
  return {
    ...{ id: `sub_${number}`, createdAtMs: 1_800_000_000_000 + number, principal: 'key_a' },
    ...{
      type: 'ja4',
      value: `value_${number}`,
      agentName: null,
      softwareId: null,
      category: null,
      purposes: [],
    },
    ...{ userAgent: null, notes: null, status: 'pending', reasons: [], duplicateOf: null },
    ...{ madeSoftware: false, decidedAtMs: null, decidedBy: null, rolledBackAtMs: null },
    ...given,
  }
}

function decision(given: Partial<SubmissionDecision>): SubmissionDecision {
  return {
    ...{ status: 'accepted', softwareId: 'acme', madeSoftware: true, decidedAtMs: 2 },
    ...{ decidedBy: 'key_a', rolledBackAtMs: null },
    ...given,
  }
}

function feedback(given: Partial<Feedback>): Feedback {
  return {
    ...{ id: 'fbk_1', decisionId: 'one', atMs: 1, principal: 'key_a', told: 'agent', toldSoftwareId: null },
    ...{ verdict: 'human', verdictSoftwareId: null, fingerprints: [TRIED] },
    ...given,
  }
}

const PAGE = { page: 1, limit: 50 }
const TRIED = { type: 'ja4', value: 't13d2011h1_1f2e3d4c5b6a_a6b5c4d3e2f1' } as const
