import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { Metrics } from '../../src/shared/metrics.ts'
import type { InquiryResult, Inquiry, SignatureUse } from '../../src/identity/keys/inquiry.ts'
import { Investigations } from '../../src/identity/verify/investigations.ts'
import { NOTHING_PUBLISHED } from './published.ts'

type KeyInquiry = Inquiry & { readonly kind: 'keys' }
type PlaceFinding = InquiryResult & { readonly kind: 'place' }

const NOW_MS = 1_795_000_000_000

test('two requests for the same cause one lookup, and both get its result', async () => {
  const { investigations, asked, told, answer } = started()
  const inquiry = keys('https://a.example')
  for (const thumbprint of [null, 'one', 'two']) investigations.ask({ ...inquiry, thumbprint })
  assert.deepEqual(asked, ['https://a.example'])
  await answer('https://a.example')
  assert.deepEqual(told, [found('https://a.example')])
  assert.deepEqual(investigations.known(), [found('https://a.example')])
  investigations.ask(inquiry)
  assert.equal(asked.length, 2, 'the caller remembers the result')
})

test('an empty result notifies no caller, and may be requested again at once', async () => {
  const { investigations, asked, told, answer } = started()
  investigations.ask(keys('https://a.example'))
  await answer('https://a.example', null)
  assert.deepEqual([told, investigations.known()], [[], []])
  investigations.ask(keys('https://a.example'))
  assert.equal(asked.length, 2)
})

test('what is over is known no more', async () => {
  const { clock, investigations, answer } = started()
  investigations.ask(keys('https://a.example'))
  await answer('https://a.example')
  clock.nowMs += 3_600_000
  assert.deepEqual(investigations.known(), [])
})

test('strangers and addresses never delay a listed agent', async () => {
  const { investigations, asked, answer } = started()
  for (let number = 0; number < 1_000; number++) {
    investigations.ask(keys(`https://agent${number}.example`))
    investigations.ask({ kind: 'place', address: `2001:db8::${number}` })
  }
  assert.equal(asked.length, 512)
  investigations.ask(keys('https://known.example', true))
  assert.equal(asked.at(-1), 'https://known.example')
  await answer('https://known.example')
  for (let number = 0; number < 9_000; number++) {
    const agentId = `https://agent${number}.example`
    if (number >= 256) investigations.ask(keys(agentId))
    await answer(agentId)
  }
  const known = investigations.known()
  assert.ok(known.some((finding) => finding.kind === 'keys' && finding.agentId === 'https://known.example'))
  assert.ok(known.length <= 4_001, `${known.length}`)
})

test('addresses are looked up only by parts that can', async () => {
  const { investigations, told, asked, answer } = started()
  investigations.ask({ kind: 'place', address: '192.0.2.1' })
  await answer('192.0.2.1', place('192.0.2.1'))
  assert.deepEqual([asked, told], [['192.0.2.1'], [place('192.0.2.1')]])
  const without = started(false)
  without.investigations.ask({ kind: 'place', address: '192.0.2.1' })
  await turn()
  assert.deepEqual([without.asked, without.told], [[], []])
})

test('closes all parts at the end, and notifies no caller afterwards', async () => {
  const { investigations, told, answer, closed } = started()
  investigations.ask(keys('https://a.example'))
  investigations.close()
  await answer('https://a.example')
  assert.deepEqual([told, closed], [[], ['directories', 'places']])
})

test('counts known entries, and uses by outcome', async () => {
  const { investigations, answer } = started()
  investigations.ask(keys('https://a.example', true))
  await answer('https://a.example')
  investigations.ask(keys('https://b.example'))
  await answer('https://b.example')
  investigations.ask(keys('https://c.example'))
  await answer('https://c.example', { ...found('https://c.example'), keys: [] })
  for (const use of [USE, USE, { ...USE, id: 'other' }, { ...USE, id: 'late', goodUntilMs: NOW_MS }])
    await investigations.claim(use)
  const metrics = new Metrics()
  investigations.addMetrics(metrics)
  const values = (await metrics.read()).flatMap(({ name, values }) =>
    values.map(
      ({ labels, value }) =>
        `${[name.replace('gatehouse_', ''), ...Object.values(labels)].join(' ')} ${value}`,
    ),
  )
  assert.deepEqual(values, [
    'signature_uses_remembered 2',
    'signature_uses_forgotten_total 0',
    ...['signature_uses_total taken 2', 'signature_uses_total refused 1', 'signature_uses_total untold 1'],
    ...['signers_known listed 1', 'signers_known other 1'],
    ...['signer_keys_known listed 2', 'signer_keys_known other 2'],
    'places_known 0',
  ])
})

/** With parts that answer when the test says so. */
function started(hasPlaces = true) {
  const clock = { nowMs: NOW_MS }
  const asked: string[] = []
  const told: InquiryResult[] = []
  const closed: string[] = []
  const answers = new Map<string, (finding: InquiryResult | null) => void>()
  const find = (key: string) => {
    asked.push(key)
    const { promise, resolve } = Promise.withResolvers<InquiryResult | null>()
    answers.set(key, resolve)
    return promise
  }
  const directories = {
    find: ({ agentId }: KeyInquiry) => find(agentId) as ReturnType<typeof find> & Promise<never>,
    close: () => void closed.push('directories'),
  }
  const places = {
    find: (address: string) => find(address) as Promise<PlaceFinding | null>,
    close: () => void closed.push('places'),
  }
  const openFloor = async () => ({ floorOf: () => NOW_MS / 1_000 - 1, cover: async () => undefined })
  const parts = { directories, places: hasPlaces ? places : null, openFloor, nowMs: () => clock.nowMs }
  const investigations = new Investigations(parts)
  investigations.onFinding((finding) => told.push(finding))
  const answer = async (key: string, finding: InquiryResult | null = found(key)) => {
    answers.get(key)?.(finding)
    await Promise.resolve()
    await Promise.resolve()
  }
  return { clock, investigations, asked, told, closed, answer }
}

function keys(agentId: string, isListed = false): KeyInquiry {
  return { kind: 'keys', agentId, thumbprint: null, isListed }
}

function found(agentId: string): InquiryResult & { readonly kind: 'keys' } {
  const times = { askAgainMs: NOW_MS, freshUntilMs: NOW_MS, untilMs: NOW_MS + 3_600_000 }
  return {
    kind: 'keys',
    agentId,
    keys: [{ kty: 'OKP' }, { kty: 'EC' }],
    why: null,
    ...NOTHING_PUBLISHED,
    ...times,
  }
}

function place(address: string): PlaceFinding {
  return {
    ...{ kind: 'place', address, untilMs: NOW_MS + 1_000 },
    place: { hosts: ['host.example'], isHostKnown: true, network: null },
  }
}

const USE: SignatureUse = {
  ...{ id: 'id', thumbprint: 'key', holder: null, isListed: false },
  ...{ createdS: NOW_MS / 1_000, goodUntilMs: NOW_MS + 1_000 },
}
