import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { parseSoftware } from '../../src/classify/known/software.ts'
import { trialCounter } from '../../src/manage/judging/submissions/trial-counter.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { FingerprintTally } from '../../src/store/catalogue/fingerprints-seen.ts'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import type { Store } from '../../src/store/store.ts'
import { sighting } from '../contract/bus.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { TestManagement } from './management.ts'
import { ANY_CHARACTER } from '../any-character.ts'

for (const kind of KINDS)
  test(`${kind}: a clean fingerprint waits, is accepted, and is taken back`, async (t) => {
    const { manage, store } = await started(t, kind)
    const writer = { authorization: `Bearer ${await manage.key({ scopes: ['write'], name: 'ci' })}` }
    const wanted = {
      ...{ fingerprint: NEW, type: 'ja4', agent_name: 'Acme Agent', category: 'orchestrator' },
      ...{ user_agent: 'acme-agent/1.0', notes: 'From our\nlab.', purpose: ['agent', 'search'] },
    }
    const submitted = await manage.ask('POST', '/v1/signatures/submit', wanted, writer)
    assert.equal(submitted.status, 200)
    const [{ id, status, signature, reasons }] = submitted.body.submissions
    assert.match(id, /^sub_/)
    assert.deepEqual([status, codesOf({ reasons })], ['pending', ['new', 'user_agent_unknown', 'not_seen']])
    assert.deepEqual(
      [
        signature.fingerprint,
        signature.agent_name,
        signature.confidence,
        signature.status,
        signature.decisive,
      ],
      [NEW, 'Acme Agent', 0, 'trial', false],
    )
    assert.equal((await manage.ask('GET', '/v1/submissions', undefined, writer)).status, 403)
    assert.deepEqual(await store.catalogue.signaturesOf('ja4', NEW), [])
    assert.equal(await store.catalogue.softwareNamed('Acme Agent'), null)

    const accepted = await review(manage, id, { decision: 'accept' })
    assert.deepEqual(
      [accepted.status, accepted.body.status, accepted.body.agent_id, accepted.body.trial.is_counting],
      [200, 'accepted', 'acme-agent', false],
    )
    assert.equal(manage.nudges, 1)
    const software = await store.catalogue.softwareNamed('acme agent')
    assert.deepEqual(
      [software?.id, software?.kind, software?.category, software?.origin],
      ['acme-agent', 'agent', 'orchestrator', 'api'],
    )
    const date = new Date(accepted.body.created_at).toISOString().slice(0, 10)
    assert.deepEqual(accepted.body.purpose, ['agent', 'search'])
    assert.deepEqual(
      JSON.parse(software!.document).purpose,
      ['agent', 'search'].map((is) => ({ is, source: `submission ${id}`, date })),
    )
    const [row] = await store.catalogue.signaturesOf('ja4', NEW)
    assert.deepEqual(
      [row!.software_id, row!.status, row!.source, row!.observations, row!.provenance],
      ['acme-agent', 'active', 'submitted', 1, `submission ${id}`],
    )
    const again = await submit(manage, wanted)
    assert.deepEqual(
      [again.status, codesOf(again)[1], again.signature.status, again.signature.agent_id],
      ['duplicate', 'known', 'active', 'acme-agent'],
    )
    assert.equal(again.signature.decisive, true)
    const [told, ...others] = await store.events.after(0, 10)
    assert.deepEqual(others, [])
    assert.deepEqual(
      [told!.type, told!.subject, told!.agent, told!.category],
      ['new_signature', `ja4 ${NEW}`, 'acme-agent', 'orchestrator'],
    )
    assert.deepEqual(JSON.parse(told!.data), { signature: again.signature, app: null })
    const listed = await manage.ask('GET', '/v1/signatures?agent_id=acme-agent')
    assert.deepEqual(
      listed.body.signatures.map((each: { decisive: boolean }) => each.decisive),
      [true],
    )

    const twice = await review(manage, id, { decision: 'accept' })
    assert.deepEqual([twice.status, twice.body.code], [409, 'conflict'])
    assert.match(twice.body.detail, /is accepted/)
    assert.equal((await review(manage, id, { decision: 'reject' })).status, 409)
    assert.equal((await store.events.after(0, 10)).length, 1)

    const back = await review(manage, id, { decision: 'rollback' })
    assert.deepEqual([back.status, back.body.status], [200, 'rejected'])
    assert.notEqual(back.body.rolled_back_at, null)
    assert.equal(manage.nudges, 2)
    assert.deepEqual(await store.catalogue.signaturesOf('ja4', NEW), [])
    assert.equal(await store.catalogue.softwareNamed('acme-agent'), null)
    const backTwice = await review(manage, id, { decision: 'rollback' })
    assert.deepEqual([backTwice.status, /is taken back/.test(backTwice.body.detail)], [409, true])

    const audit = await store.audit.list({ page: 1, limit: 10 })
    assert.deepEqual(
      audit.items.filter(({ subject }) => subject === id).map(({ detail }) => detail['decision']),
      ['rollback', 'accept'],
    )
  })

test('a purpose is one of the known ones, and given once', async (t) => {
  const { manage } = await started(t, 'sqlite')
  const answers = [['spying'], ['search', 'search'], 'search', [1]].map(async (purpose) => {
    const wanted = { fingerprint: NEW, type: 'ja4', agent_name: 'Acme Agent', purpose }
    const { status, body } = await manage.ask('POST', '/v1/signatures/submit', wanted)
    return [status, JSON.stringify(body).includes('/purpose')]
  })
  assert.deepEqual(await Promise.all(answers), Array(4).fill([400, true]))
  for (const purpose of [null, []]) {
    const { id } = await submit(manage, { fingerprint: NEW, type: 'ja4', agent_name: 'Acme Agent', purpose })
    assert.deepEqual((await manage.ask('GET', `/v1/submissions/${id}`)).body.purpose, [])
  }
})

test('where the operator has it so, what nothing speaks against is accepted at once, and all else waits', async (t) => {
  const { manage, store } = await started(t)
  assert.equal((await manage.ask('PATCH', '/v1/settings', { 'submissions.auto_accept': true })).status, 200)
  const { body } = await manage.ask('POST', '/v1/signatures/submit', {
    submissions: [
      { fingerprint: NEW, type: 'ja4', agent_name: 'Acme Agent' },
      { fingerprint: fresh(1), type: 'ja4', agent_name: 'Acme Agent' },
      { fingerprint: fresh(2), type: 'ja4', agent_name: 'GPTBot' },
      { fingerprint: fresh(3), type: 'ja4' },
      { fingerprint: CHROME[0], type: 'ja4', agent_name: 'Acme Agent' },
      { fingerprint: fresh(4), type: 'ja4', agent_name: 'Acme', user_agent: 'Mozilla/5.0 Chrome/140.0.0.0' },
    ],
  })
  assert.deepEqual(
    body.submissions.map((each: Shown) => each.status),
    ['accepted', 'accepted', 'pending', 'pending', 'rejected', 'pending'],
  )
  const [{ id, signature }] = body.submissions
  assert.deepEqual([signature.status, signature.agent_id], ['active', 'acme-agent'])
  assert.equal((await store.catalogue.signaturesOf('ja4', fresh(1)))[0]!.software_id, 'acme-agent')
  assert.ok(manage.nudges > 0)
  const audit = await store.audit.list({ page: 1, limit: 10 })
  assert.equal(audit.items.filter(({ subject }) => subject === id).length, 1)
  assert.equal((await review(manage, id, { decision: 'accept' })).status, 409)
  assert.equal((await review(manage, id, { decision: 'rollback' })).status, 200)
})

test('a submission that is sent again with its key is answered as before', async (t) => {
  const { manage } = await started(t)
  const body = { fingerprint: NEW, type: 'ja4', agent_name: 'Acme' }
  const send = (given: unknown) =>
    manage.ask('POST', '/v1/signatures/submit', given, { 'idempotency-key': 'one' })
  const [first, again] = [await send(body), await send(body)]
  assert.equal(first.body.submissions[0].status, 'pending')
  assert.deepEqual(again.body, first.body)
  assert.equal((await send({ ...body, agent_name: 'Other' })).status, 409)
  assert.equal((await manage.ask('GET', '/v1/submissions')).body.total, 1)
})

test('what is malformed is refused with its place, and nothing of the list is taken', async (t) => {
  const { manage } = await started(t)
  const good = { fingerprint: NEW, type: 'ja4', agent_name: 'Acme' }
  const bad: readonly (readonly [unknown, string, RegExp])[] = [
    [{}, '/fingerprint', /missing/],
    [{ submissions: [] }, '/submissions', /empty/],
    [{ submissions: [good, { ...good, type: 'ja5' }] }, '/submissions/1/type', /ja4s/],
    [{ ...good, fingerprint: '*_*_*' }, '/fingerprint', /part a/],
    [{ ...good, fingerprint: NEW.replace(/_\w{12}$/, '_*') }, '/fingerprint', /part c/],
    [{ ...good, fingerprint: NEW.toUpperCase() }, '/fingerprint', /part a/],
    [{ submissions: [good, { ...good, fingerprint: `${NEW}0` }] }, '/submissions/1/fingerprint', /part c/],
    [{ ...good, fingerprint: `${NEW}\0` }, '/fingerprint', /part c/],
    [{ ...good, agent_name: '' }, '/agent_name', /empty/],
    [{ ...good, agent_name: ' Acme' }, '/agent_name', /blank/],
    [{ ...good, agent_name: 'Ac\u200bme' }, '/agent_name', /invisible/],
    [{ ...good, agent_name: '\u202eemcA' }, '/agent_name', /invisible/],
    [{ ...good, agent_name: 'Ac\0me' }, '/agent_name', /invisible/],
    [{ ...good, agent_name: '\ud800' }, '/agent_name', /invisible/],
    [{ ...good, agent_name: '***' }, '/agent_name', /no letter/],
    [{ ...good, agent_name: 'a'.repeat(101) }, '/agent_name', /longer/],
    [{ ...good, agent_name: `a${'\u0301'.repeat(9)}` }, '/agent_name', /combining marks/],
    [{ ...good, category: 'malware' }, '/category', /crawler/],
    [{ ...good, user_agent: 'a\r\nb' }, '/user_agent', /not a valid header value/],
    [{ ...good, notes: 'a\u0000' }, '/notes', /invisible/],
    [{ ...good, notes: 'a'.repeat(2_001) }, '/notes', /longer/],
    [{ ...good, agentname: 'x' }, '/agentname', /did you mean "agent_name"/],
    [{ submissions: Array.from({ length: 1_001 }, () => good) }, '/submissions', /more than/],
  ]
  for (const [body, pointer, detail] of bad) {
    const { status, body: problem } = await manage.ask('POST', '/v1/signatures/submit', body)
    const said = JSON.stringify(problem.errors)
    assert.equal(status, 400, JSON.stringify(body).slice(0, 100))
    const at = problem.errors.find((each: { pointer: string }) => each.pointer === pointer)
    assert.match(at?.detail ?? '', detail, said)
  }
  assert.equal((await manage.ask('GET', '/v1/submissions')).body.total, 0)
  assert.deepEqual(manage.failures, [])
})

test('what browsers have is never anybody’s, whoever submits it, and however it is accepted', async (t) => {
  const { manage, store } = await started(t)
  const of = (fingerprint: string, more = {}) =>
    submit(manage, { fingerprint, type: 'ja4', agent_name: 'Acme', ...more })
  for (const chrome of CHROME) {
    const { status, reasons } = await of(chrome)
    assert.deepEqual(
      [status, reasons.some((each: Reason) => each.code === 'browser_fingerprint')],
      ['rejected', true],
    )
  }
  // To an address instead of a name, and without ALPN: the same program.
  for (const variant of [CHROME[0]!.replace('t13d1516h2', 't13i1515h2'), CHROME[0]!.replace('h2_', 'h1_')])
    assert.equal((await of(variant)).status, 'rejected', variant)
  // The next version, and one that resumes a session.
  const next = await of(CHROME[0]!.replace(/_\w{12}$/, '_0123456789ab'))
  assert.deepEqual([next.status, codesOf(next).includes('parts_of_browsers')], ['pending', true])
  // Nobody who drives a browser can be told from its people.
  const driver = await of(CHROME[0]!, { agent_name: 'Driver', category: 'browser-agent' })
  assert.deepEqual([driver.status, codesOf(driver).includes('browser_of_agent')], ['pending', true])
  // It may not become another's by being accepted for him.
  await add(store, { id: 'acme-crawler', name: 'Acme Crawler', kind: 'agent', category: 'crawler' })
  const moved = await review(manage, driver.id, { decision: 'accept', agent_id: 'acme-crawler' })
  assert.deepEqual([moved.status, moved.body.code], [409, 'conflict'])
  const asBrowser = await review(manage, next.id, { decision: 'accept', agent_id: 'chrome' })
  assert.deepEqual([asBrowser.status, /browser/.test(asBrowser.body.detail)], [409, true])
  assert.deepEqual(await store.catalogue.signaturesOf('ja4', CHROME[0]!), [])
  assert.equal(manage.nudges, 0)
})

test('a JA4H of browsers is theirs whatever cookies it has', async (t) => {
  const { manage } = await started(t)
  const ja4h = 'ge20cr13enus_51f90bf7065b_f2bc6acb6b4e_0123456789ab'
  const { status, reasons } = await submit(manage, { fingerprint: ja4h, type: 'ja4h', agent_name: 'Acme' })
  assert.equal(status, 'rejected')
  assert.deepEqual(codesOf({ reasons }), ['one_visitor', 'browser_fingerprint', 'parts_known', 'not_seen'])
})

test('names that are taken for others are refused, and what is known by name is told', async (t) => {
  const { manage } = await started(t)
  const cases: readonly (readonly [string, string, string])[] = [
    ['G\u0420TBot', 'rejected', 'look_alike_name'],
    ['\uff27\uff30\uff34\uff22\uff4f\uff54', 'rejected', 'look_alike_name'],
    ['GPTB\u00f8t', 'rejected', 'look_alike_name'],
    ['\u0441url', 'rejected', 'look_alike_name'],
    ['Chrome', 'rejected', 'name_of_browser'],
    ['GOOGLE  chrome', 'rejected', 'name_of_browser'],
    ['GPTBot', 'pending', 'known_agent'],
    ['gpt-crawler', 'pending', 'known_agent'],
    ['gpt bot', 'pending', 'name_like_known'],
    ['GPTB0t', 'pending', 'name_like_known'],
    ['curl', 'pending', 'name_of_tool'],
    ['\u767e\u5ea6Spider', 'pending', 'new'],
    ['\u042f\u043d\u0434\u0435\u043a\u0441', 'pending', 'new'],
  ]
  for (const [number, [name, status, code]] of cases.entries()) {
    const done = await submit(manage, { fingerprint: fresh(number), type: 'ja4', agent_name: name })
    assert.deepEqual(
      [name, done.status, codesOf(done).includes(code)],
      [name, status, true],
      codesOf(done).join(),
    )
  }
})

test('an agent without a Latin letter in its name has an id all the same, and one with an odd name as well', async (t) => {
  const { manage } = await started(t)
  for (const [number, [name, id]] of (
    [
      ['\u767e\u5ea6', /^agent-[0-9a-f]{12}$/],
      ['Caf\u00e9 Agent', /^cafe-agent$/],
      [`${'x'.repeat(63)} y`, /^x{63}$/],
      ['3.14', /^agent-[0-9a-f]{12}$/],
    ] as const
  ).entries()) {
    const done = await submit(manage, { fingerprint: fresh(number), type: 'ja4', agent_name: name })
    const { status, body } = await review(manage, done.id, { decision: 'accept' })
    assert.equal(status, 200, name)
    assert.match(body.agent_id, id)
  }
})

test('what cannot be is refused, and what hardly can waits', async (t) => {
  const { manage } = await started(t)
  const cases: readonly (readonly [string, string, string, string])[] = [
    ['ja4', 't13d1516h2_000000000000_e5627efa2ab1', 'rejected', 'impossible'],
    ['ja4', 't13d1500h2_8daaf6152771_e5627efa2ab1', 'rejected', 'impossible'],
    ['ja4', 't13d1502h2_8daaf6152771_0123456789ab', 'rejected', 'impossible'],
    ['ja4', 't12i000000_000000000000_000000000000', 'rejected', 'empty'],
    ['ja4', 'q13d0310h2_aaf6152771aa_0123456789ab', 'pending', 'odd'],
    ['ja4', 't13d0310h3_aaf6152771aa_0123456789ab', 'pending', 'odd'],
    ['ja4s', 't120200_0a0a_0123456789ab', 'rejected', 'impossible'],
    ['ja4s', 't130200_1302_0123456789ab', 'pending', 'servers_answer'],
    ['ja4h', 'ge11nn050000_0123456789ab_0123456789ab_0123456789ab', 'rejected', 'impossible'],
    ['ja4h', 'ge11cn050000_0123456789ab_0123456789ab_0123456789ab', 'pending', 'one_visitor'],
    ['ja4x', '000000000000_000000000000_000000000000', 'rejected', 'empty'],
  ]
  for (const [type, fingerprint, status, code] of cases) {
    const done = await submit(manage, { fingerprint, type, agent_name: 'Acme' })
    assert.deepEqual([fingerprint, done.status, codesOf(done).includes(code)], [fingerprint, status, true])
  }
})

test('the same again is a duplicate, the same for another agent is not, and both are told', async (t) => {
  const { manage } = await started(t)
  const first = await submit(manage, { fingerprint: NEW, type: 'ja4', agent_name: 'Acme Agent' })
  const { body } = await manage.ask('POST', '/v1/signatures/submit', {
    submissions: [
      { fingerprint: NEW, type: 'ja4', agent_name: 'ACME-agent' },
      { fingerprint: NEW, type: 'ja4' },
      { fingerprint: NEW, type: 'ja4', agent_name: 'Other' },
      { fingerprint: NEW, type: 'ja4', agent_name: 'Other' },
      { fingerprint: fresh(1), type: 'ja4' },
    ],
  })
  assert.deepEqual(
    body.submissions.map((each: Shown) => each.status),
    ['duplicate', 'duplicate', 'pending', 'duplicate', 'pending'],
  )
  assert.ok(codesOf(body.submissions[2]).includes('submitted_for_another'))
  const shown = await manage.ask('GET', `/v1/submissions/${body.submissions[3].id}`)
  assert.equal(shown.body.duplicate_of, body.submissions[2].id)
  assert.equal(
    (await manage.ask('GET', `/v1/submissions/${body.submissions[0].id}`)).body.duplicate_of,
    first.id,
  )
  // One that names nobody can only be accepted for somebody.
  const nameless = body.submissions[4].id
  const refused = await review(manage, nameless, { decision: 'accept' })
  assert.deepEqual([refused.status, refused.body.errors[0].pointer], [400, '/agent_id'])
  assert.equal((await review(manage, nameless, { decision: 'accept', agent_id: 'nobody' })).status, 400)
  assert.equal(
    (await review(manage, nameless, { decision: 'accept', agent_id: 'GPTBot' })).body.agent_id,
    'gptbot',
  )
})

for (const kind of KINDS)
  test(`${kind}: of two administrators who decide at once one is told what the other decided`, async (t) => {
    const { manage, store } = await started(t, kind)
    for (let number = 0; number < 5; number++) {
      const { id } = await submit(manage, {
        fingerprint: fresh(number),
        type: 'ja4',
        agent_name: `Acme ${number}`,
      })
      const both = await Promise.all([
        review(manage, id, { decision: 'accept' }),
        review(manage, id, { decision: 'reject' }),
        review(manage, id, { decision: 'accept' }),
      ])
      assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409, 409])
      const { body } = await manage.ask('GET', `/v1/submissions/${id}`)
      const rows = await store.catalogue.signaturesOf('ja4', fresh(number))
      assert.equal(rows.length, body.status === 'accepted' ? 1 : 0)
    }
    assert.deepEqual(manage.failures, [])
  })

for (const kind of KINDS)
  test(`${kind}: two submissions for one new agent make it once, and it goes with the last of them`, async (t) => {
    const { manage, store } = await started(t, kind)
    const ids: string[] = []
    for (const number of [1, 2])
      ids.push((await submit(manage, { fingerprint: fresh(number), type: 'ja4', agent_name: 'Twin' })).id)
    const both = await Promise.all(ids.map((id) => review(manage, id, { decision: 'accept' })))
    assert.deepEqual(
      both.map(({ status, body }) => [status, body.agent_id]),
      [
        [200, 'twin'],
        [200, 'twin'],
      ],
    )
    await review(manage, ids[0]!, { decision: 'rollback' })
    assert.equal((await store.catalogue.softwareNamed('twin'))?.id, 'twin')
    await review(manage, ids[1]!, { decision: 'rollback' })
    assert.equal(await store.catalogue.softwareNamed('twin'), null)
    // What was there before stays.
    const known = await submit(manage, { fingerprint: fresh(3), type: 'ja4', agent_name: 'GPTBot' })
    await review(manage, known.id, { decision: 'accept' })
    await review(manage, known.id, { decision: 'rollback' })
    assert.equal((await store.catalogue.softwareNamed('gptbot'))?.id, 'gptbot')
    assert.deepEqual(await store.catalogue.signaturesOf('ja4', fresh(3)), [])
    // Accepted anew, it judges anew.
    const anew = await submit(manage, { fingerprint: fresh(3), type: 'ja4', agent_name: 'GPTBot' })
    assert.equal(anew.status, 'pending')
    await review(manage, anew.id, { decision: 'accept' })
    assert.equal((await store.catalogue.signaturesOf('ja4', fresh(3)))[0]!.status, 'active')
  })

test('on trial it is counted on live traffic, decides nothing, and people’s browsers are not given away', async (t) => {
  const { manage, store } = await started(t)
  const { id } = await submit(manage, { fingerprint: NEW, type: 'ja4', agent_name: 'Acme' })
  const count = counterOf(store)
  const seen = (number: number, more: Partial<Sighting>) => ({ ...sighting(number), ja4: NEW, ...more })
  await count([
    seen(1, { address: '192.0.2.1', verdict: 'unknown' }),
    seen(2, { address: '192.0.2.2', verdict: 'automation' }),
    seen(3, { address: '192.0.2.2', verdict: 'agent', agent: 'gptbot' }),
    { ...sighting(4), ja4: fresh(9) },
  ])
  await count([5, 6, 7].map((number) => seen(number, { address: '2001:db8::1', verdict: 'human' })))
  const { body } = await manage.ask('GET', `/v1/submissions/${id}`)
  const { hits, addresses, undecided, agreements, disagreements } = body.trial
  assert.deepEqual([hits, addresses, undecided, agreements], [6, 3, 2, 0])
  assert.deepEqual(disagreements, {
    total: 4,
    by: [
      { verdict: 'human', agent_id: null, requests: 3 },
      { verdict: 'agent', agent_id: 'gptbot', requests: 1 },
    ],
  })
  assert.deepEqual(await store.catalogue.signaturesOf('ja4', NEW), [])
  const refused = await review(manage, id, { decision: 'accept' })
  assert.deepEqual([refused.status, /3 of 6/.test(refused.body.detail)], [409, true])
  assert.equal((await review(manage, id, { decision: 'accept', despite_people: true })).status, 200)
  await count([seen(8, {})])
  assert.equal((await manage.ask('GET', `/v1/submissions/${id}`)).body.trial.hits, 6)
})

test('what live traffic says of a fingerprint is told when it comes, and when it is accepted', async (t) => {
  const { manage, store } = await started(t)
  const seen = Array.from({ length: 600 }, (_, number) => {
    const said = number < 3 ? { verdict: 'human' } : { verdict: 'agent', agent: 'gptbot' }
    return { ...sighting(number), ja4: number < 5 ? NEW : 'x', ...said }
  })
  await store.transaction(async (queries) => {
    await store.sightings.add(seen, Date.now(), queries)
    const tally = new FingerprintTally()
    for (const each of seen) tally.add(each, each.snapshot)
    await store.fingerprintsSeen.add(tally, queries)
  })
  const told = async (agent: string) =>
    codesOf(await submit(manage, { fingerprint: NEW, type: 'ja4', agent_name: agent }))
  assert.deepEqual(await told('Acme'), ['new', 'seen', 'seen_of_people', 'seen_of_others'])
  assert.deepEqual(await told('GPTBot'), [
    ...['known_agent', 'new', 'submitted_for_another', 'seen', 'seen_of_people', 'seen_agrees'],
  ])
})

test('whatever is sent in, it is taken or refused with a reason, and nothing of ours fails', async (t) => {
  const { manage } = await started(t)
  const anything = fc.oneof(fc.string({ unit: ANY_CHARACTER }), fc.anything())
  const member = fc.constantFrom(
    'fingerprint',
    'type',
    'agent_name',
    'category',
    'user_agent',
    'notes',
    '__proto__',
  )
  const wellFormed = fc.record({
    fingerprint: fc.constantFrom(NEW, CHROME[0]!, fresh(1), 't130200_1302_0123456789ab'),
    type: fc.constantFrom('ja4', 'ja4s', 'ja4h', 'ja4x'),
    agent_name: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 100 }),
    user_agent: fc.string({ maxLength: 50 }),
    notes: fc.string({ unit: 'grapheme' }),
  })
  const outcomes = { taken: 0, refused: 0 }
  await fc.assert(
    fc.asyncProperty(wellFormed, member, anything, fc.boolean(), async (good, name, value, isBroken) => {
      const body = isBroken ? { ...good, [name]: value } : good
      const { status, body: answer } = await manage.ask('POST', '/v1/signatures/submit', body)
      assert.ok(status === 200 || status === 400, `${status}`)
      assert.deepEqual(manage.failures, [])
      outcomes[status === 400 ? 'refused' : 'taken']++
      if (status === 400) return assert.ok(answer.errors.length > 0)
      const [{ id, reasons }] = answer.submissions
      assert.ok(reasons.length > 0)
      const shown = await manage.ask('GET', `/v1/submissions/${id}`)
      assert.equal(shown.body.agent_name, (body.agent_name ?? null)?.normalize('NFC') ?? null)
    }),
    { numRuns: 150 },
  )
  assert.ok(outcomes.taken > 10 && outcomes.refused > 10, JSON.stringify(outcomes))
})

test('junk is bounded: nobody waits for more than he may, and others still may', async (t) => {
  const { manage, store } = await started(t)
  const flooder = { authorization: `Bearer ${await manage.key({ scopes: ['write'], name: 'flood' })}` }
  const list = (from: number, count: number) => ({
    submissions: Array.from({ length: count }, (_, number) => ({
      ...{ fingerprint: fresh(from + number), type: 'ja4', agent_name: `Junk ${from + number}` },
    })),
  })
  assert.equal((await manage.ask('POST', '/v1/signatures/submit', list(0, 1_000), flooder)).status, 200)
  const full = await manage.ask('POST', '/v1/signatures/submit', list(1_000, 1), flooder)
  assert.deepEqual([full.status, full.body.code], [409, 'conflict'])
  assert.equal((await manage.ask('GET', '/v1/submissions?status=pending')).body.total, 1_000)
  assert.equal(
    (await submit(manage, { fingerprint: NEW, type: 'ja4', agent_name: 'Acme' })).status,
    'pending',
  )
  // A list that goes too far is not taken in part.
  assert.equal((await store.trials.counted()).length, 1_001)
})

test('submissions are listed, filtered and found', async (t) => {
  const { manage } = await started(t)
  await submit(manage, { fingerprint: NEW, type: 'ja4', agent_name: '100% Acme_Agent' })
  await submit(manage, { fingerprint: CHROME[0], type: 'ja4', agent_name: 'Bad' })
  await submit(manage, { fingerprint: 't130200_1302_0123456789ab', type: 'ja4s', agent_name: 'Answer' })
  const found = async (query: string) => {
    const { status, body } = await manage.ask('GET', `/v1/submissions?${query}`)
    assert.equal(status, 200, query)
    return body.submissions.map((each: Shown) => each.agent_name)
  }
  assert.deepEqual(await found('status=rejected'), ['Bad'])
  assert.deepEqual(await found('type=ja4s'), ['Answer'])
  assert.deepEqual(await found('q=acme_'), ['100% Acme_Agent'])
  assert.deepEqual(await found('q=0%25%20A'), ['100% Acme_Agent'])
  assert.deepEqual(await found('q=%25%25'), [])
  assert.deepEqual(await found(`q=${NEW.slice(0, 14).toUpperCase()}`), ['100% Acme_Agent'])
  assert.deepEqual(await found('limit=1&page=2'), ['Bad'])
  assert.equal((await manage.ask('GET', '/v1/submissions?status=open')).status, 400)
  for (const id of ['sub_x', '%00', 'a'.repeat(300)])
    assert.equal((await manage.ask('GET', `/v1/submissions/${id}`)).status, 404)
  assert.equal((await review(manage, 'sub_x', { decision: 'maybe' })).status, 404)
})

test('feedback is counted once for each decision, at its fingerprints', async (t) => {
  const { manage, store } = await started(t)
  const { id } = await submit(manage, { fingerprint: NEW, type: 'ja4', agent_name: 'Acme' })
  const seen = [1, 2, 3].map((number) => ({ ...sighting(number), ja4: NEW, verdict: 'automation' }))
  await store.transaction((queries) => store.sightings.add(seen, Date.now(), queries))
  const tell = (body: unknown) => manage.ask('POST', '/v1/feedback', body)
  const first = await tell({ decision_id: seen[0]!.id, verdict: 'human' })
  assert.deepEqual([first.status, first.body.outcome], [200, 'false_positive'])
  assert.deepEqual(first.body.counted_for, [{ type: 'ja4', fingerprint: NEW }])
  await tell({ decision_id: seen[0]!.id, verdict: 'human' })
  await tell({ request_id: seen[1]!.id, verdict: 'agent' })
  await tell({ decision_id: seen[2]!.id, verdict: 'agent', agent: 'GPTBot' })
  const figures = async () => {
    const { trial } = (await manage.ask('GET', `/v1/submissions/${id}`)).body
    return [trial.false_positive_reports, trial.confirmations, trial.contradictions]
  }
  assert.deepEqual(await figures(), [1, 1, 1])
  // The last word counts.
  await tell({ decision_id: seen[0]!.id, verdict: 'agent' })
  assert.deepEqual(await figures(), [0, 2, 1])

  const detected = await manage.ask('POST', '/v1/detect', { user_agent: 'GPTBot/1.2', ja4: NEW })
  const wrong = await tell({ request_id: detected.body.request_id, verdict: 'human' })
  assert.deepEqual(
    [wrong.status, wrong.body.outcome, wrong.body.decided.agent_id],
    [200, 'false_positive', 'gptbot'],
  )
  assert.deepEqual(await figures(), [1, 2, 1])

  const bad: readonly (readonly [unknown, number])[] = [
    [{ decision_id: 'nobody', verdict: 'human' }, 404],
    [{ request_id: 'nobody', verdict: 'human' }, 404],
    [{ verdict: 'human' }, 400],
    [{ decision_id: 'a', request_id: 'b', verdict: 'human' }, 400],
    [{ decision_id: seen[0]!.id, verdict: 'bot' }, 400],
    [{ decision_id: seen[0]!.id, verdict: 'human', agent: 'GPTBot' }, 400],
    [{ decision_id: seen[0]!.id, verdict: 'agent', agent: 'Nobody' }, 400],
    [{ decision_id: seen[0]!.id, verdict: 'agent', agent: 'curl' }, 400],
    [{ decision_id: 'a\0', verdict: 'human' }, 400],
  ]
  for (const [body, status] of bad) assert.equal((await tell(body)).status, status, JSON.stringify(body))
  const reader = { authorization: `Bearer ${await manage.key({ scopes: ['read', 'detect', 'write'] })}` }
  assert.equal((await manage.ask('POST', '/v1/feedback', { verdict: 'human' }, reader)).status, 403)
})

type Reason = { readonly code: string }
interface Shown {
  readonly status: string
  readonly agent_name: string
}

async function started(
  t: Test,
  kind: DatabaseKind = 'sqlite',
): Promise<{ manage: TestManagement; store: Store }> {
  const manage = await TestManagement.start(t, { knows: true, storeUrl: await freshUrl(kind, t) })
  const store = await openAt(t, manage.storeUrl)
  await add(store, {
    id: 'chrome',
    name: 'Google Chrome',
    aliases: ['Chrome'],
    kind: 'browser',
    engine: 'blink',
  })
  await add(store, { id: 'curl', name: 'curl', kind: 'tool' })
  await add(store, {
    id: 'gptbot',
    name: 'GPTBot',
    aliases: ['gpt-crawler'],
    kind: 'agent',
    category: 'crawler',
  })
  return { manage, store }
}

function add(store: Store, software: Readonly<Record<string, unknown>>): Promise<boolean> {
  return store.transaction((queries) => store.catalogue.addSoftware(parseSoftware(software), 1, queries))
}

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
async function submit(manage: TestManagement, body: unknown): Promise<any> {
  const answered = await manage.ask('POST', '/v1/signatures/submit', body)
  assert.equal(answered.status, 200, JSON.stringify(answered.body))
  return answered.body.submissions[0]
}

function review(manage: TestManagement, id: string, body: unknown) {
  return manage.ask('POST', `/v1/submissions/${id}/review`, body)
}

function codesOf({ reasons }: { readonly reasons: readonly Reason[] }): readonly string[] {
  return reasons.map(({ code }) => code)
}

/** Counts as ingest does. */
function counterOf(store: Store): (batch: readonly Sighting[]) => Promise<void> {
  let nowMs = 0
  const counter = trialCounter(store, () => (nowMs += 10_000))
  return (batch) => store.transaction((queries) => counter(batch, queries))
}

/** That nobody has. */
function fresh(number: number): string {
  const hex = (number + 0xabcdef012).toString(16).padStart(12, '0')
  return `t13d2011h1_${hex}_${[...hex].reverse().join('')}`
}

const NEW = 't13d2011h1_1f2e3d4c5b6a_a6b5c4d3e2f1'
const CHROME = [
  't13d1516h2_8daaf6152771_02713d6af862',
  't13d1516h2_8daaf6152771_e5627efa2ab1',
  't13d1517h2_8daaf6152771_b0da82dd1658',
]
