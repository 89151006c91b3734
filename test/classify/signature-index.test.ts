import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import {
  FingerprintKey,
  hashKey,
  KEY_FORM_OF,
  type PartsAlike,
} from '../../src/classify/known/index/fingerprint-key.ts'
import { buildSignatureIndex, type IndexedSignature } from '../../src/classify/known/index/index-builder.ts'
import {
  checksum,
  homeOf,
  PROBES_MAX,
  readHeader,
  SUMMED_FROM,
} from '../../src/classify/known/index/index-layout.ts'
import type { FingerprintType } from '../../src/classify/known/signature.ts'
import {
  type Candidate,
  type Likeness,
  type Nearest,
  SignatureIndex,
} from '../../src/classify/known/index/signature-index.ts'
import { Fault } from '../../src/shared/fault.ts'
import { ANY_CHARACTER } from '../any-character.ts'

const SEED = [0x1234_5678, -1] as const
const A = 't13d1517h2'
const B = '8daaf6152771'
const C = 'cb7bf5808d99'
const CHROME = `${A}_${B}_${C}`

test('the owners of a fingerprint, most observed first', async () => {
  const index = indexOf([
    ja4(CHROME, 3, 10),
    ja4(CHROME, 1, 20),
    ja4(CHROME, 2, 10),
    ja4(CHROME, 3, 5),
    ja4(`${A}_${B}_000000000000`, 9, 100),
  ])
  assert.equal(index.count, 4, 'the same of the same is one')
  assert.equal(index.softwareCount, 10)
  assert.deepEqual(said(index.find('ja4', CHROME, 'exact')), ['1:20', '3:15', '2:10'])
  assert.deepEqual(said(index.find('ja4', CHROME, 'a_b')), ['9:100', '1:20', '3:15', '2:10'])
  assert.deepEqual(said(index.find('ja4', CHROME, 'c')), ['1:20', '3:15', '2:10'])
  assert.deepEqual(index.find('ja4s', CHROME, 'exact'), [])
  assert.deepEqual(index.find('ja4', `${A}_${B}_cb7bf5808d98`, 'exact'), [])
})

test('candidates are made once', async () => {
  const index = indexOf([ja4(CHROME, 1, 1), ja4(`t12i0505h1_${B}_${C}`, 2, 1)])
  for (const likeness of ['exact', 'b_c'] as const)
    assert.equal(index.find('ja4', CHROME, likeness), index.find('ja4', CHROME, likeness))
  assert.notDeepEqual(index.find('ja4', CHROME, 'exact'), index.find('ja4', CHROME, 'b_c'))
})

test('the most observed of many are kept', async () => {
  const index = indexOf(Array.from({ length: 40 }, (_, software) => ja4(CHROME, software, software % 20)))
  const found = said(index.find('ja4', CHROME, 'exact'))
  assert.equal(found.length, 16)
  assert.deepEqual(found.slice(0, 4), ['19:19', '39:19', '18:18', '38:18'])
})

test('observations are summed as far as numbers go', async () => {
  const most = Number.MAX_SAFE_INTEGER
  const index = indexOf([
    ja4(CHROME, 1, most),
    ja4(CHROME, 1, most),
    ja4(CHROME, 2, 2 ** 32 + 7),
    ja4(CHROME, 3, 0),
  ])
  assert.deepEqual(said(index.find('ja4', CHROME, 'exact')), [`1:${most}`, `2:${2 ** 32 + 7}`, '3:0'])
})

test('a signature with stars is found by the parts it has', async () => {
  const index = indexOf([
    ja4(`*_${B}_*`, 1, 1),
    ja4(`${A}_*_${C}`, 2, 1),
    ja4(`${A}_*_*`, 3, 1),
    ja4(`${A}_111111111111_222222222222`, 4, 1),
  ])
  const found = (likeness: Likeness) => said(index.find('ja4', CHROME, likeness))
  assert.deepEqual(found('exact'), [])
  assert.deepEqual(found('b'), ['1:1'])
  assert.deepEqual(found('a_c'), ['2:1'])
  assert.deepEqual(found('c'), ['2:1'])
  assert.deepEqual(found('a'), ['3:1'], 'of part a only what says no more: everybody shares it')
  assert.deepEqual(found('a_b'), [])
})

test('the nearest is the most telling', async () => {
  const all = [
    ja4(CHROME, 0, 1),
    { type: 'stable', value: `gs1-${A}-${B}-${C}`, software: 1, observations: 1 } as const,
    ja4(`*_${B}_${C}`, 2, 1),
    ja4(`${A}_*_${C}`, 3, 1),
    ja4(`${A}_${B}_*`, 4, 1),
    ja4(`*_*_${C}`, 5, 1),
    ja4(`*_${B}_*`, 6, 1),
    ja4(`${A}_*_*`, 7, 1),
  ]
  const expected = ['exact', 'stable', 'b_c', 'a_c', 'a_b', 'c', 'b', 'a']
  for (const [i, likeness] of expected.entries()) {
    const nearest = indexOf(all.slice(i)).nearest('ja4', CHROME, `gs1-${A}-${B}-${C}`)
    assert.equal(nearest?.likeness, likeness)
    assert.equal(
      nearest.candidates.some(({ software }) => software === i),
      true,
    )
  }
  assert.equal(indexOf(all.slice(1)).nearest('ja4', CHROME)?.likeness, 'b_c', 'without a stable key')
  assert.equal(indexOf([]).nearest('ja4', CHROME, `gs1-${A}-${B}-${C}`), null)
})

test('what can stand in a fingerprint', async () => {
  const h = '0123456789ab_cdef01234567_89abcdef0123'
  const valid: readonly (readonly [FingerprintType, string])[] = [
    ['ja4', `dd1i440200_${B}_${C}`],
    ['ja4', `t12i0505\xff\x80_${B}_${C}`],
    ['ja4', `________*__${B}_${C}`],
    ['ja4s', 't130200_1301_234ea6891581'],
    ['ja4h', `m-11cn10enus_${h}`],
    ['ja4h', `*_20nr000000_${h}`],
    ['ja4x', h],
    ['stable', `gs1-${A}-${B}-${C}`],
    ['http2', '1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p'],
    ['http2', '|0|0|'],
    ['http2', ''],
    ['http2', 'x'.repeat(1024)],
  ]
  for (const [type, value] of valid) {
    const index = indexOf([{ type, value, software: 5, observations: 7 }])
    assert.deepEqual(said(index.find(type, value, 'exact')), ['5:7'], value)
  }
})

test('an invalid fingerprint has no owner', async () => {
  const index = indexOf([ja4(CHROME, 1, 1), ja4(`*_${B}_*`, 1, 1)])
  const wrong = [
    '',
    CHROME.slice(1),
    `${CHROME}0`,
    `${A}-${B}_${C}`,
    `${A}_${B}-${C}`,
    `${A}_${B.toUpperCase()}_${C}`,
    `${A}_8daaf615277g_${C}`,
    `${A}_8daaf615277\u0131_${C}`,
    `t13d1517h\u0132_${B}_${C}`,
    `*_${B}_*`,
    '*_*_*',
  ]
  for (const value of wrong) {
    for (const likeness of ['exact', 'a_b', 'b', 'a_b_c', 'd'] as const)
      assert.deepEqual(index.find('ja4', value, likeness), [], value)
    assert.equal(index.nearest('ja4', value), null)
  }
  for (const likeness of ['a_b_c', 'd', 'c_d'] as const)
    assert.deepEqual(index.find('ja4', CHROME, likeness), [], 'a JA4 has no such parts')
  assert.deepEqual(index.find('http2', 'x'.repeat(1025), 'exact'), [])
})

test('what cannot be indexed is named', async () => {
  const wrong: readonly (readonly [signature: IndexedSignature, what: RegExp])[] = [
    [ja4('*_*_*', 1, 1), /signature 2 is not a valid ja4: "\*_\*_\*"/],
    [ja4(`${A}_${B}`, 1, 1), /signature 2 is not a valid ja4/],
    [ja4(`${A}_*_${C}_*`, 1, 1), /signature 2 is not a valid ja4/],
    [ja4(`${A}_*_cb7b`, 1, 1), /signature 2 is not a valid ja4/],
    [ja4(`t13d_*_${C}`, 1, 1), /signature 2 is not a valid ja4/],
    [{ ...ja4('', 1, 1), type: 'stable', value: `gs1-*-${B}-${C}` }, /signature 2 is not a valid stable/],
    [{ ...ja4('', 1, 1), type: 'http2', value: 'x'.repeat(1025) }, /signature 2 is not a valid http2/],
    [ja4(CHROME, -1, 1), /software number -1/],
    [ja4(CHROME, 1.5, 1), /software number 1\.5/],
    [ja4(CHROME, 2 ** 31, 1), /software number 2147483648/],
    [ja4(CHROME, 1, -1), /observations: -1/],
    [ja4(CHROME, 1, Number.NaN), /observations: NaN/],
  ]
  for (const [signature, what] of wrong)
    assert.throws(() => indexOf([ja4(CHROME, 1, 1), signature]), isFault('SIGNATURES_NOT_INDEXED', what))
})

test('an empty index has no owners', async () => {
  const index = indexOf([])
  assert.equal(index.count, 0)
  assert.equal(index.softwareCount, 0)
  assert.deepEqual(index.find('ja4', CHROME, 'exact'), [])
  assert.deepEqual(index.find('http2', '', 'exact'), [])
  assert.equal(index.nearest('http2', '|0|0|'), null)
})

test('agrees with a slow model', async () => {
  fc.assert(
    fc.property(
      fc.array(anySignature(true), { maxLength: 40 }),
      fc.array(anySignature(false)),
      (list, asked) => {
        const index = indexOf(list)
        assert.equal(index.count, new Set(list.map((s) => `${s.type} ${s.value} ${s.software}`)).size)
        for (const { type, value } of [...list, ...asked]) {
          for (const likeness of LIKENESSES)
            assert.deepEqual(index.find(type, value, likeness), model(list, type, value, likeness))
          const stable = asked.find((signature) => signature.type === 'stable')?.value ?? null
          assert.deepEqual(index.nearest(type, value, stable), modelNearest(list, type, value, stable))
        }
      },
    ),
    { numRuns: 300 },
  )
})

test('nothing a client sends makes it throw', async () => {
  const index = indexOf([ja4(CHROME, 1, 1)])
  fc.assert(
    fc.property(
      fc.constantFrom(...TYPES),
      fc.string({ unit: ANY_CHARACTER, maxLength: 60 }),
      (type, value) => {
        assert.deepEqual(index.find(type, value, 'exact'), [])
      },
    ),
  )
})

test('a signature takes no more than 200 bytes', async () => {
  const digits = (number: number) => number.toString(16).padStart(12, '0')
  const shapes: Readonly<Record<string, readonly IndexedSignature[]>> = {
    distinct: Array.from({ length: 4000 }, (_, i) =>
      ja4(`t13d${String(i).padStart(6, '0')}_${digits(i)}_${digits(i)}`, i, 1),
    ),
    alike: Array.from({ length: 4096 }, (_, i) =>
      ja4(`t13d${String(i >> 8).padStart(6, '0')}_${digits((i >> 4) & 15)}_${digits(i & 15)}`, i, 1),
    ),
    'in pairs': Array.from({ length: 4000 }, (_, i) =>
      ja4(`t13d${String(i).padStart(6, '0')}_${digits(i >> 1)}_${digits(i >> 1)}`, i, 1),
    ),
    'of many parts': Array.from({ length: 4000 }, (_, i) => ({
      ...{ type: 'ja4h', software: i, observations: 1 },
      value: `ge11cn${String(i).padStart(6, '0')}_${digits(i >> 1)}_${digits(i)}_${digits(i)}`,
    })),
  }
  for (const [shape, signatures] of Object.entries(shapes)) {
    const bytes = buildSignatureIndex(signatures, SEED)
    assert.ok(bytes.length / signatures.length <= 200, `${shape}: ${bytes.length / signatures.length}`)
  }
})

test('keys that count up are spread', async () => {
  const signatures = Array.from({ length: 20_000 }, (_, i) =>
    ja4(`${A}_${B}_${i.toString(16).padStart(12, '0')}`, 1, 1),
  )
  const { probes } = readHeader(wordsOf(buildSignatureIndex(signatures, SEED)))
  assert.ok(Math.max(...probes) < PROBES_MAX / 2, String(Math.max(...probes)))
})

test('signatures that were chosen to fall together with one seed get another', async () => {
  const form = KEY_FORM_OF.ja4
  const key = new FingerprintKey()
  const signatures: IndexedSignature[] = []
  for (let i = 0; signatures.length < 200; i++) {
    const value = `${A}_${B}_${i.toString(16).padStart(12, '0')}`
    assert.ok(key.read(form, value))
    if (homeOf(hashKey(form, form.whole, key.words, 0, SEED), 400) === 0) signatures.push(ja4(value, i, 1))
  }
  const bytes = buildSignatureIndex(signatures, SEED)
  const { seed, probes } = readHeader(wordsOf(bytes))
  assert.notDeepEqual(seed, SEED)
  assert.ok(Math.max(...probes) <= PROBES_MAX)
  const index = SignatureIndex.open(bytes.buffer)
  for (const { value, software } of signatures)
    assert.deepEqual(said(index.find('ja4', value, 'exact')), [`${software}:1`])
  assert.deepEqual(readHeader(wordsOf(buildSignatureIndex(signatures.slice(0, 9), SEED))).seed, SEED)
})

test('bytes that are cut or longer are refused', async () => {
  const bytes = buildSignatureIndex(MIXED, SEED)
  assert.equal(SignatureIndex.open(bytes.buffer).count, MIXED.length)
  for (let length = 0; length < bytes.length; length++)
    assert.throws(() => SignatureIndex.open(bytes.slice(0, length).buffer), isFault('INDEX_INVALID', /index/))
  for (const more of [1, 4, 8])
    assert.throws(() => SignatureIndex.open(longer(bytes, more)), isFault('INDEX_INVALID', /index/))
})

test('every byte that changed is noticed', async () => {
  const bytes = buildSignatureIndex(MIXED, SEED)
  for (let at = 0; at < bytes.length; at++) {
    const damaged = bytes.slice()
    damaged[at]! ^= 1 << (at % 8)
    assert.throws(() => SignatureIndex.open(damaged.buffer), isFault('INDEX_INVALID', /index/), `byte ${at}`)
  }
})

test('bytes made to do harm are refused, or do none', async () => {
  const bytes = buildSignatureIndex(MIXED, SEED)
  const count = bytes.length / 4
  const values = fc.oneof(
    fc.integer(),
    fc.constantFrom(-1, 0, 1, 2, 0x7fff_ffff, -0x8000_0000, count, count + 1),
  )
  let refused = 0
  let opened = 0
  const harm = fc.array(fc.tuple(fc.integer({ min: 4, max: count - 1 }), values), {
    minLength: 1,
    maxLength: 3,
  })
  fc.assert(
    fc.property(harm, (changes) => {
      const words = wordsOf(bytes.slice())
      for (const [at, value] of changes) words[at] = value
      words[3] = checksum(words, SUMMED_FROM, words.length, 0)
      let index: SignatureIndex
      try {
        index = SignatureIndex.open(words.buffer as ArrayBuffer)
      } catch (error) {
        assert.ok(isFault('INDEX_INVALID', /build it again/)(error))
        refused++
        return
      }
      opened++
      for (const { type, value } of MIXED)
        for (const likeness of LIKENESSES) assertSound(index, index.find(type, value, likeness))
    }),
    { numRuns: 4000 },
  )
  assert.ok(refused > 100 && opened > 100, `${refused} refused, ${opened} opened`)
})

test('a table that is full of others ends', async () => {
  const bytes = buildSignatureIndex(MIXED, SEED)
  const words = wordsOf(bytes)
  const layout = readHeader(words)
  const form = KEY_FORM_OF.ja4
  const table = form.firstTable + form.whole
  const slotsAt = layout.slotsAt[table]!
  // Every slot has the bits of the hash that is looked for, and a list of another key.
  const value = `${A}_111111111111_333333333333`
  const key = new FingerprintKey()
  assert.ok(key.read(form, value))
  const tag = hashKey(form, form.whole, key.words, 0, layout.seed) & 0xff
  const list = words.subarray(slotsAt, slotsAt + layout.slots[table]!).find((slot) => slot !== 0)! & 0xff_ffff
  words.fill((tag << 24) | list, slotsAt, slotsAt + layout.slots[table]!)
  words[3] = checksum(words, SUMMED_FROM, words.length, 0)
  assert.deepEqual(SignatureIndex.open(bytes.buffer).find('ja4', value, 'exact'), [])
})

test('what points elsewhere is refused', async () => {
  const layout = readHeader(wordsOf(buildSignatureIndex(MIXED, SEED)))
  const { ja4, http2 } = KEY_FORM_OF
  const slot = layout.slotsAt[ja4.firstTable + ja4.whole]!
  const ofOther = layout.firstRow[http2.number]! + 1
  const text = layout.rowsAt[http2.number]!
  const wrong: readonly (readonly [at: number, value: number, what: RegExp])[] = [
    [slot, ofOther, /without a list of its type/],
    [slot, layout.listCount + 1, /without a list of its type/],
    [slot, 0xff00_0000 | 0, /without a list of its type/],
    [text, layout.textWords, /a missing text/],
    [text, -1, /a missing text/],
    [text, 1, /a missing text/],
    [layout.mergedAt, layout.rowCount, /a list without a row/],
  ]
  for (const [at, value, what] of wrong) {
    const words = wordsOf(buildSignatureIndex(MIXED, SEED))
    words[at] = value
    words[3] = checksum(words, SUMMED_FROM, words.length, 0)
    assert.throws(() => SignatureIndex.open(words.buffer), isFault('INDEX_INVALID', what), `${at}: ${value}`)
  }
})

test('opening can be done a bit at a time', async () => {
  const signatures = Array.from({ length: 10_000 }, (_, i) =>
    ja4(`${A}_${B}_${i.toString(16).padStart(12, '0')}`, 1, 1),
  )
  const opening = SignatureIndex.opening(buildSignatureIndex(signatures, SEED).buffer)
  let steps = 0
  for (;;) {
    const step = opening.next()
    steps++
    if (!step.done) continue
    assert.equal(step.value.count, 10_000)
    break
  }
  assert.ok(steps > 5, `${steps} steps`)
})

function indexOf(signatures: readonly IndexedSignature[]): SignatureIndex {
  return SignatureIndex.open(buildSignatureIndex(signatures, SEED).buffer)
}

function ja4(value: string, software: number, observations: number): IndexedSignature {
  return { type: 'ja4', value, software, observations }
}

function said(candidates: readonly Candidate[]): string[] {
  return candidates.map(({ software, observations }) => `${software}:${observations}`)
}

function wordsOf(bytes: Uint8Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  return new Int32Array(bytes.buffer)
}

function longer(bytes: Uint8Array, more: number): ArrayBuffer {
  const all = new Uint8Array(bytes.length + more)
  all.set(bytes)
  return all.buffer
}

function isFault(code: string, message: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof Fault && error.code === code && message.test(error.message)
}

function assertSound(index: SignatureIndex, candidates: readonly Candidate[]): void {
  assert.ok(candidates.length <= 16)
  for (const { software, observations } of candidates) {
    assert.ok(Number.isInteger(software) && software >= 0 && software < index.softwareCount)
    assert.ok(Number.isSafeInteger(observations) && observations >= 0)
  }
}

/** Few values, so that many have parts in common. */
function anySignature(stars: boolean): fc.Arbitrary<IndexedSignature> {
  const part = (...texts: string[]) => fc.constantFrom(...texts, ...(stars ? ['*'] : []))
  const hash = () => part('000000000000', '8daaf6152771', 'ffffffffffff')
  const joined = (...parts: fc.Arbitrary<string>[]) =>
    fc
      .tuple(...parts)
      .map((texts) => texts.join('_'))
      .filter((text) => !/^[*_]+$/.test(text))
  const values: Readonly<Record<FingerprintType, fc.Arbitrary<string>>> = {
    ja4: joined(part('t13d1517h2', 'q13d0310h3', 't13d__17h2'), hash(), hash()),
    ja4s: joined(part('t130200', 't120300'), part('1301', 'c02f'), hash()),
    ja4h: joined(part('ge11cn10enus', '_*20nn050000'), hash(), hash(), hash()),
    ja4x: joined(hash(), hash(), hash()),
    stable: fc.constantFrom(`gs1-${A}-${B}-${C}`, `gs1-${A}-${C}-${B}`),
    http2: fc.constantFrom('', '|0|0|', '1:65536|15663105|0|m,a,s,p', '1:65536|15663105|0|m,a,p,s'),
  }
  return fc.constantFrom(...TYPES).chain((type) =>
    fc.record({
      type: fc.constant(type),
      value: values[type],
      software: fc.integer({ min: 0, max: 20 }),
      observations: fc.oneof(fc.integer({ min: 0, max: 5 }), fc.maxSafeNat()),
    }),
  )
}

/** By parts, cut apart where a star or the form says. `null` where a part is a star. */
function cut(type: FingerprintType, value: string): readonly (string | null)[] {
  if (type === 'http2' || type === 'stable') return [value]
  const first = { ja4: 10, ja4s: 7, ja4h: 12, ja4x: 12 }[type]
  const at = value.startsWith('*_') ? 1 : first
  return [value.slice(0, at), ...value.slice(at + 1).split('_')].map((part) => (part === '*' ? null : part))
}

function model(
  list: readonly IndexedSignature[],
  type: FingerprintType,
  value: string,
  likeness: Likeness,
): Candidate[] {
  const asked = cut(type, value)
  if (asked.includes(null)) return []
  const wanted =
    likeness === 'exact' ? asked.map((_, i) => i) : likeness.split('_').map((name) => 'abcd'.indexOf(name))
  if (likeness !== 'exact' && (wanted.length >= asked.length || Math.max(...wanted) >= asked.length))
    return []
  const isTelling = TELLING[type].includes(likeness)
  const sums = new Map<number, number>()
  for (const signature of list) {
    const parts = signature.type === type ? cut(type, signature.value) : []
    const has = parts.flatMap((part, i) => (part === null ? [] : [i]))
    const isMeant = isTelling ? wanted.every((i) => has.includes(i)) : String(has) === String(wanted)
    if (parts.length === 0 || !isMeant || !wanted.every((i) => parts[i] === asked[i])) continue
    const sum = (sums.get(signature.software) ?? 0) + signature.observations
    sums.set(signature.software, Math.min(sum, Number.MAX_SAFE_INTEGER))
  }
  return [...sums]
    .map(([software, observations]) => ({ software, observations }))
    .sort((one, other) => other.observations - one.observations || one.software - other.software)
    .slice(0, 16)
}

function modelNearest(
  list: readonly IndexedSignature[],
  type: FingerprintType,
  value: string,
  stable: string | null,
): Nearest | null {
  const likenesses = ['exact', 'stable', ...ORDER[type]] as const
  for (const likeness of likenesses) {
    const candidates =
      likeness !== 'stable'
        ? model(list, type, value, likeness)
        : stable === null
          ? []
          : model(list, 'stable', stable, 'exact')
    if (candidates.length > 0) return { likeness, candidates }
  }
  return null
}

const TYPES = ['ja4', 'ja4s', 'ja4h', 'ja4x', 'stable', 'http2'] as const
const ORDER: Readonly<Record<FingerprintType, readonly PartsAlike[]>> = {
  ja4: ['b_c', 'a_c', 'a_b', 'c', 'b', 'a'],
  ja4s: ['a_c', 'b_c', 'a_b', 'c', 'a', 'b'],
  ja4h: [
    ...(['a_b_c', 'b_c_d', 'a_b_d', 'a_b', 'b_c', 'b_d', 'a_c_d', 'b'] as const),
    ...(['a_c', 'a_d', 'c_d', 'c', 'd', 'a'] as const),
  ],
  ja4x: ['b_c', 'a_c', 'a_b', 'c', 'b', 'a'],
  stable: [],
  http2: [],
}
const TELLING: Readonly<Record<FingerprintType, readonly Likeness[]>> = {
  ja4: ['b_c', 'a_c', 'a_b', 'c', 'b'],
  ja4s: ['a_c', 'b_c', 'a_b'],
  ja4h: ['a_b_c', 'a_b', 'b'],
  ja4x: ['b_c', 'a_c', 'a_b', 'c'],
  stable: [],
  http2: [],
}
const LIKENESSES: readonly Likeness[] = ['exact', ...ORDER.ja4h]
const MIXED: readonly IndexedSignature[] = [
  ja4(CHROME, 3, 10),
  ja4(CHROME, 1, 2 ** 40),
  ja4(`${A}_${B}_000000000000`, 9, 100),
  ja4(`*_${B}_*`, 0, 5),
  ja4(`${A}_111111111111_222222222222`, 4, 1),
  {
    type: 'ja4h',
    value: 'ge11cn10enus_0123456789ab_cdef01234567_89abcdef0123',
    software: 2,
    observations: 1,
  },
  {
    type: 'ja4h',
    value: 'ge11cn10enus_0123456789ab_cdef01234567_000000000000',
    software: 6,
    observations: 1,
  },
  { type: 'ja4s', value: 't130200_1301_234ea6891581', software: 2, observations: 1 },
  { type: 'ja4x', value: '0123456789ab_cdef01234567_89abcdef0123', software: 2, observations: 1 },
  { type: 'stable', value: `gs1-${A}-${B}-${C}`, software: 1, observations: 1 },
  { type: 'http2', value: '1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p', software: 1, observations: 3 },
  { type: 'http2', value: '|0|0|', software: 1, observations: 3 },
]
