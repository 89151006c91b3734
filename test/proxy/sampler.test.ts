import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { RULES } from '../../src/manage/events/threats/rules.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { Sampler, type SamplingSettings } from '../../src/proxy/worker/sampler.ts'
import { seen } from '../contract/seen.ts'

const ALL = { default: 1, agent: null, automation: null, human: null, unknown: null, blocked: 1 }

test('a share is by verdict, and another one for requests that are refused or limited', async () => {
  const shares = { ...ALL, default: 0.5, human: 0.01, agent: 0.25, blocked: 0.75 }
  const shareOf = (changes: Partial<Sighting>) => {
    const sampler = new Sampler({ shares, perSecond: null }, 0, () => 0)
    return sampler.choose([unnamed(1, changes)], 0)[0]!.sampled
  }
  assert.deepEqual(
    ['agent', 'automation', 'human', 'unknown'].map((verdict) => shareOf({ verdict })),
    [0.25, 0.5, 0.01, 0.5],
  )
  for (const refused of [{ done: 'block' }, { done: 'tarpit' }, { done: 'rate_limit' }, { limited: true }])
    assert.equal(shareOf({ verdict: 'human', ...refused }), 0.75)
})

test('an app has shares of its own', async () => {
  const apps = { shop: { ...ALL, default: 0.1, human: 0.01, blocked: 0.2 } }
  const settings = { shares: { ...ALL, default: 0.5 }, apps, perSecond: null }
  const shareOf = (changes: Partial<Sighting>) =>
    new Sampler(settings, 0, () => 0).choose([unnamed(1, changes)], 0)[0]!.sampled
  assert.deepEqual(
    [{ verdict: 'human' }, { verdict: 'agent' }, { verdict: 'agent', done: 'block' }].map((changes) =>
      ['shop', 'blog'].map((app) => shareOf({ app, ...changes })),
    ),
    [
      [0.01, 0.5],
      [0.1, 0.5],
      [0.2, 1],
    ],
  )
  // A name that objects have by themselves.
  assert.equal(shareOf({ app: 'constructor', verdict: 'human' }), 0.5)
})

test('a share of 0 keeps none, and what is kept stands for all', async () => {
  const sampler = samplerOf({ human: 0.1, unknown: 0 })
  const all = Array.from({ length: 20_000 }, (_, number) =>
    unnamed(number, { verdict: number % 2 ? 'human' : 'unknown' }),
  )
  const chosen = sampler.choose(all, 0)
  assert.ok(chosen.every(({ verdict }) => verdict === 'human'))
  assert.ok(Math.abs(standingFor(chosen) - 10_000) < 1_000, `${standingFor(chosen)}`)
})

test('requests with evidence of a threat are kept', async () => {
  const property = fc.property(
    fc.record({
      evidence: fc.subarray([
        ...['spoofed-browser', 'address-foreign', 'host-foreign', 'signature-failed', 'signed-as-another'],
        ...['signed-with-foreign-fingerprint', 'signed-from-foreign-address', 'names-agent', 'names-tool'],
      ]),
      forged: fc.subarray(['x-agent-name']),
      done: fc.constantFrom('pass', 'tag', 'block', 'tarpit'),
      limited: fc.boolean(),
    }),
    (changes) => {
      const sighting = unnamed(1, changes)
      const isThreat = RULES.some((rule) => rule.holds(sighting, { disallowing: () => null }))
      const chosen = samplerOf({ default: 0 }).choose([sighting], 0)
      assert.equal(chosen.length, isThreat ? 1 : 0)
      assert.ok(chosen.every(({ sampled }) => sampled === 1))
    },
  )
  fc.assert(property)
})

test('the first request of each agent, tool and browser in an hour is kept, and again when it has a proof', async () => {
  const sampler = samplerOf({ default: 0 })
  const kept = (nowMs: number, ...sightings: Sighting[]) => sampler.choose(sightings, nowMs).length
  const agent = () => unnamed(1, { verdict: 'agent', agent: 'gptbot' })
  assert.equal(kept(0, agent(), agent(), unnamed(2, { software: 'curl' }), unnamed(3)), 2)
  assert.equal(kept(3_599_999, agent(), unnamed(2, { software: 'curl' })), 0)
  assert.equal(kept(3_599_999, { ...agent(), verified: 'ip-range' }), 1)
  assert.equal(kept(3_600_000, agent(), agent()), 1)
})

test('a limit has room for threats before others, and for apps with few requests', async () => {
  const sampler = new Sampler({ shares: ALL, perSecond: 100 }, 0, random())
  let chosen: Sighting[] = []
  for (let ms = 100; ms <= 3_000; ms += 100) {
    const noisy = Array.from({ length: 500 }, (_, number) => unnamed(number, { app: 'noisy' }))
    const others = [unnamed(1, { app: 'quiet' }), unnamed(2, { app: 'noisy', forged: ['x-agent-name'] })]
    chosen = [...chosen, ...sampler.choose([...noisy, ...others], ms)]
  }
  assert.equal(chosen.length, 300)
  const quiet = chosen.filter(({ app }) => app === 'quiet')
  assert.deepEqual([quiet.length, standingFor(quiet)], [30, 30])
  assert.equal(chosen.filter(({ forged }) => forged.length > 0).length, 30)
  assert.ok(Math.abs(standingFor(chosen) - 15_060) < 0.001, `${standingFor(chosen)}`)
})

test('with more apps than room, the limit holds', async () => {
  const sampler = new Sampler({ shares: ALL, perSecond: 100 }, 0, random())
  let kept = 0
  let stands = 0
  for (let ms = 100; ms <= 10_000; ms += 100) {
    const all = Array.from({ length: 1_000 }, (_, number) => unnamed(number, { app: `app-${number}` }))
    const chosen = sampler.choose(all, ms)
    kept += chosen.length
    stands += standingFor(chosen)
  }
  assert.ok(kept > 800 && kept < 1_200, `${kept}`)
  assert.ok(Math.abs(stands - 100_000) < 20_000, `${stands}`)
})

test('a pause leaves no more room than a second', async () => {
  const sampler = new Sampler({ shares: ALL, perSecond: 10 }, 0, random())
  const all = Array.from({ length: 100 }, (_, number) => unnamed(number))
  assert.equal(sampler.choose(all, 3_600_000).length, 10)
  assert.equal(sampler.choose(all, 3_600_000).length, 0)
})

function samplerOf(shares: Partial<SamplingSettings['shares']>): Sampler {
  return new Sampler({ shares: { ...ALL, ...shares }, perSecond: null }, 0, random())
}

function unnamed(number: number, changes: Partial<Sighting> = {}): Sighting {
  return seen(number, { software: null, forged: [], evidence: [], done: 'pass', ...changes })
}

/** The same numbers in each run. */
function random(): () => number {
  let state = 1
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff
    return state / 0x8000_0000
  }
}

function standingFor(sightings: readonly Sighting[]): number {
  return sightings.reduce((all, { sampled }) => all + 1 / sampled!, 0)
}
