import assert from 'node:assert/strict'
import { test } from 'tap'
import { classify, classifyDescribed } from '../../src/classify/verdict/classify.ts'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import { describeRequest } from '../../src/classify/verdict/described-request.ts'
import { NO_PROOFS, PROVEN_CONFIDENCE, type Proofs } from '../../src/classify/verdict/proof.ts'
import type { Verdict } from '../../src/classify/verdict/verdict.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'
import { NOTHING_KNOWN } from '../../src/proxy/connection/connection.ts'

const NOW_MS = Date.UTC(2026, 10, 26)
const knowledge = await loadKnowledge(null, null)
const GPTBOT =
  'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)'
const [CURL, PYTHON_TLS] = ['curl/7.88.1', 't13d1812h1_85036bcba153_375ca2c5e164']

test('a mere claim to be a crawler that could prove itself is believed as much as not', async () => {
  const { kind, agent, confidence, nameConfidence } = described({ userAgent: GPTBOT })
  assert.deepEqual([kind, agent?.id, nameConfidence], ['agent', 'gptbot', 0.5])
  assert.ok(confidence > 0.9)
})

test('a claim that nothing could prove is believed more, and most with the TLS of that program', async () => {
  const owned = knowledge.list.find(({ id }) => id === 'curl')!
  const own = owned.signatures.find(({ type }) => type === 'ja4')
  assert.ok(own?.type === 'ja4')
  const [alone, fitting, foreign] = [null, own.value, PYTHON_TLS].map((ja4) =>
    described({ userAgent: CURL, ja4 }),
  )
  assert.deepEqual(
    [alone, fitting, foreign].map((each) => each?.software?.id),
    ['curl', 'curl', 'curl'],
  )
  assert.deepEqual(
    [alone, fitting, foreign].map((each) => each?.nameConfidence),
    [0.72, 0.94, 0.72],
  )
})

test('no name, no confidence in it', async () => {
  const { software, nameConfidence } = described({ ja4: 't13d9999h2_aaaaaaaaaaaa_bbbbbbbbbbbb' })
  assert.deepEqual([software, nameConfidence], [null, 0])
})

test('a proof makes the name certain, and what contradicts the claim makes it a lie', async () => {
  const claimed = judged(GPTBOT)
  assert.deepEqual([claimed.agent?.id, claimed.nameConfidence], ['gptbot', 0.5])

  const failed = judged(GPTBOT, {
    signature: { kind: 'failed', why: 'signature-invalid', agentId: 'https://openai.com' },
    places: null,
  })
  assert.deepEqual([failed.agent?.id, failed.nameConfidence], ['gptbot', 0.05])
  assert.equal(failed.confidence, claimed.confidence)

  const signer = knowledge.list.find(({ verification }) => verification.signatureAgent !== null)!
  const agentId = `${signer.verification.signatureAgent}`
  const signed = judged('curl/8.1', {
    signature: { kind: 'proven', agentId: new URL(agentId).origin, thumbprint: 'k', about: null },
    places: null,
  })
  assert.equal(signed.proof?.method, 'web-bot-auth')
  assert.equal(signed.nameConfidence, signed.agent === null ? 0.72 : PROVEN_CONFIDENCE)
  assert.ok(signed.agent !== null)
})

test('a signer that no signature knows has no name to be sure of', async () => {
  const signed = judged(GPTBOT, {
    signature: { kind: 'proven', agentId: 'https://stranger.test', thumbprint: 'k', about: null },
    places: null,
  })
  assert.deepEqual([signed.agent, signed.software, signed.nameConfidence], [null, null, 0])
  assert.equal(signed.confidence, PROVEN_CONFIDENCE)
})

test('it is never above that of a proof, nor below 0', async () => {
  for (const { signatures } of knowledge.list)
    for (const each of signatures) {
      if (each.type !== 'user-agent') continue
      const { software, nameConfidence, proof } = described({ userAgent: each.text })
      assert.equal(proof, null)
      assert.ok(
        software === null ? nameConfidence === 0 : nameConfidence > 0 && nameConfidence <= 0.95,
        each.text,
      )
    }
})

function described({
  userAgent = null,
  ja4 = null,
}: {
  userAgent?: string | null
  ja4?: string | null
}): Verdict {
  const nothing = { method: null, target: null, version: null, rawHeaders: null, address: null, stable: null }
  const unknown = { ja4s: null, ja4x: null, ja4h: null, http2: null, noHello: null, isTls: null }
  const request = describeRequest({ ...nothing, ...unknown, userAgent, ja4 }, true)
  return classifyDescribed(knowledge, request, NOW_MS).verdict
}

function judged(userAgent: string, proofs: Proofs = NO_PROOFS): Verdict {
  const head = {
    method: 'GET',
    target: '/',
    version: '11' as const,
    rawHeaders: ['Host', 'a.test', 'User-Agent', userAgent],
  }
  const print = { connection: NOTHING_KNOWN, ja4h: null }
  return classify(knowledge, { print, head, conduct: new Conduct(), nowMs: NOW_MS }, proofs)
}
