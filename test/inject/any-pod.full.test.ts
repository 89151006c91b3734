import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { Fault } from '../../src/shared/fault.ts'
import { parseReview } from '../../src/inject/admission-review.ts'
import { parsePod } from '../../src/inject/pod.ts'
import { anyPod, anySettings } from './arbitrary-pod.ts'
import { again, answerTo, checkReferences, podAfter, REVIEWS, sidecarSettings } from './reviews.ts'

const TEXT = REVIEWS.get('deployment')!

test('any Pod: a patch applies and gives a valid Pod, and what has a sidecar gets nothing', async () => {
  const outcomes = { patched: 0, unchanged: 0, refused: 0 }
  fc.assert(
    fc.property(anyPod, anySettings, (pod, settings) => {
      const text = again(TEXT, pod)
      const answer = answerTo(text, sidecarSettings(settings))
      if (!answer.allowed) {
        outcomes.refused++
        assert.match(answer.status!.message, /^Gatehouse cannot be put into this Pod: \S/)
        return
      }
      const after = podAfter(text, answer)
      if (answer.patch === undefined) outcomes.unchanged++
      else {
        outcomes.patched++
        const running = [
          ...after.spec!.containers,
          ...after.spec!.initContainers!.filter(({ restartPolicy }) => restartPolicy === 'Always'),
        ]
        const tcp = running.flatMap(({ ports = [] }) => ports.filter(({ protocol }) => protocol !== 'UDP'))
        const ours = after.spec!.initContainers!.at(-1)!.ports!.map(({ containerPort }) => containerPort)
        for (const port of ours)
          assert.equal(tcp.filter(({ containerPort }) => containerPort === port).length, 1, `port ${port}`)
        checkReferences(after)
      }
      const second = answerTo(again(text, after), sidecarSettings(settings))
      assert.deepEqual([second.allowed, second.patch], [true, undefined])
    }),
    { numRuns: 1500 },
  )
  for (const [outcome, count] of Object.entries(outcomes)) assert.ok(count > 100, `${outcome}: ${count}`)
})

test('any JSON at all is answered, or refused by a Fault that says where', async () => {
  const review = JSON.parse(TEXT)
  const places = pointersOf(review.request, [])
  fc.assert(
    fc.property(fc.constantFrom(...places), fc.jsonValue({ maxDepth: 3 }), (place, value) => {
      const spoilt = structuredClone(review)
      put(spoilt.request, place, value)
      assertAnswered(JSON.stringify(spoilt))
    }),
    { numRuns: 2000 },
  )
})

test('every review that is cut short is invalid JSON, wherever it is cut', async () => {
  for (const [name, text] of REVIEWS) {
    const whole = JSON.stringify(JSON.parse(text))
    for (let end = 0; end < whole.length; end += name === 'named-ports' ? 1 : 37)
      assert.throws(() => JSON.parse(whole.slice(0, end)), SyntaxError, name)
  }
})

test('every value of a review, of another type', async () => {
  for (const name of ['named-ports', 'init-containers', 'subresource']) {
    const review = JSON.parse(REVIEWS.get(name)!)
    for (const place of pointersOf(review, [])) {
      for (const value of [null, 0, -1, 1.5, '', 'x', true, [], [null], {}, { port: {} }]) {
        const spoilt = structuredClone(review)
        put(spoilt, place, value)
        assertAnswered(JSON.stringify(spoilt))
      }
    }
  }
})

test('keys of prototypes are plain keys, and deep nesting does not recurse', async () => {
  const hostile = TEXT.replace(
    '"labels": {',
    '"__proto__": {"labels": {}}, "labels": {"__proto__": "x", "constructor": "y",',
  )
  assert.notEqual(hostile, TEXT)
  const { allowed, patch } = answerTo(hostile)
  assert.ok(allowed && patch !== undefined)
  assert.equal(Reflect.get({}, 'labels'), undefined)
  // A label that only a prototype has does not count.
  const review = JSON.parse(TEXT)
  delete review.request.object.metadata.labels['gatehouse.dev/inject']
  const inherited = JSON.stringify(review).replace(
    '"labels":{',
    '"labels":{"__proto__":{"gatehouse.dev/inject":"true"},',
  )
  assert.throws(() => answerTo(inherited), {
    code: 'JSON_INVALID',
    message: /^metadata.labels __proto__ is a mapping/,
  })
  const deep = `${'['.repeat(500_000)}${']'.repeat(500_000)}`
  assert.equal(answerTo(TEXT.replace('"status": {}', `"status": ${deep}`)).allowed, true)
  assert.throws(() => answerTo(TEXT.replace('"spec": {', `"spec": ${deep}, "x": {`)), Fault)
})

test('a review says what is wrong with it', async () => {
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [null, /^the body is empty; expected a mapping$/],
    [[], /^the body is a list/],
    [
      { apiVersion: 'admission.k8s.io/v1beta1', kind: 'AdmissionReview' },
      /no AdmissionReview of admission\.k8s\.io\/v1$/,
    ],
    [{ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' }, /^request is empty/],
    [
      { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: { uid: 7 } },
      /^request\.uid is 7; expected text$/,
    ],
    [
      { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: { uid: '' } },
      /^request\.uid has from 1 to 256/,
    ],
    [
      { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: { uid: 'u' } },
      /^request\.operation is empty/,
    ],
  ]
  for (const [value, message] of cases) assert.throws(() => parseReview(value), { message })
  const pod = { metadata: {}, spec: { containers: [{ name: 'a', ports: [{ containerPort: 70_000 }] }] } }
  assert.throws(() => parsePod(pod, 'web'), {
    message: 'spec.containers[0].ports[0].containerPort is 70000; expected a port',
  })
})

function assertAnswered(text: string): void {
  try {
    answerTo(text)
  } catch (error) {
    assert.ok(error instanceof Fault && error.message !== '', String(error))
  }
}

/** Ways to every value in it. */
function pointersOf(value: unknown, way: readonly string[]): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [way]
  const below = Object.entries(value).flatMap(([name, member]) => pointersOf(member, [...way, name]))
  return way.length === 0 ? below : [way, ...below]
}

function put(target: object, way: readonly string[], value: unknown): void {
  const around = way.slice(0, -1).reduce<object>((at, name) => Reflect.get(at, name), target)
  Reflect.set(around, way.at(-1)!, value)
}
