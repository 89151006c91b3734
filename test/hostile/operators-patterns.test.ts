import assert from 'node:assert/strict'
import { test } from 'tap'
import { HeaderIndex } from '../../src/classify/known/index/header-index.ts'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { UserAgentIndex } from '../../src/classify/known/user-agent.ts'
import { Fault } from '../../src/shared/fault.ts'
import { RobotsTxt } from '../../src/terms/robots-txt.ts'
import { decide } from '../../src/policy/decide.ts'
import { parsePolicy } from '../../src/policy/policy.ts'
import { UNKNOWN } from '../../src/classify/verdict/verdict.ts'
import { NOTHING_KNOWN } from '../../src/proxy/connection/connection.ts'
import { ServedHosts } from '../../src/proxy/connection/served-hosts.ts'
import { IS_WHOLE } from './whole.ts'

const CONNECTION = { serverName: null, isTls: false }
const SOURCE = { source: 'made up', date: '2026-11-21' }
/** A head may have so much. */
const LENGTH = 60_000
/** In as many steps as characters it is less than ten; in their square, some thousands. */
const LIMIT_MS = 250
const A = 'a'.repeat(200)
/** As bad as globs get for who backtracks, or searches anew at each place. */
const GLOBS = [
  '*a'.repeat(900) + 'b',
  `${'*a'.repeat(900)}*`,
  `*b${A}*`,
  `*${A}b*`,
  `*${'ab'.repeat(100)}aa*`,
  `*${A}*${A}*b`,
  `${'*'.repeat(1_800)}b`,
  `*${A}`,
  `${A}*b*${A}`,
]
/** Texts that nearly fit all of them, from some way on. */
const TEXTS = (length: number) => [
  'a'.repeat(length),
  `${'a'.repeat(length)}c`,
  'ab'.repeat(length / 2),
  `${'b'.repeat(length)}`,
  `${A}b`.repeat(length / 201),
]
/** Each takes a glob, and a text, where a peer says what the text is. */
const PLACES: Readonly<Record<string, (glob: string) => (text: string) => unknown>> = {
  'a path of a policy': (glob) => deciding({ path: `/${glob}` }),
  'a host of a policy': (glob) => deciding({ host: glob.slice(0, 200) }),
  'a header of a policy': (glob) => deciding({ header: { 'x-a': glob } }),
  'a header of a signature': (glob) => {
    const list = software([{ type: 'header', name: 'x-a', value: glob, ...SOURCE }])
    const found = new HeaderIndex(list).find('x-a')
    return (text) => found.softwareOf(text)
  },
  'a User-Agent of a signature': (glob) => {
    const list = software([{ type: 'user-agent', text: glob.replaceAll('*', ' '), ...SOURCE }])
    const index = new UserAgentIndex(list)
    return (text) => index.claim(text)
  },
  'a line of robots.txt': (glob) => {
    const robots = RobotsTxt.forPaths(`User-agent: *\nDisallow: /${glob}\n`.repeat(IS_WHOLE ? 100 : 10))
    return (text) => robots.disallowing('x', `/${text}`)
  },
  'a host that is served': (glob) => {
    const hosts = new ServedHosts([glob.slice(0, 200)], { covers: () => false })
    return (text) => hosts.ownerOf(text, CONNECTION as never)
  },
}

test('the worst globs take as long as there is text, in each place that has one', {
  timeout: 300_000,
}, async (t) => {
  let tried = 0
  for (const [place, make] of Object.entries(PLACES))
    for (const glob of GLOBS) {
      const matches = refusedOr(() => make(glob))
      if (matches === null) continue
      for (const text of TEXTS(LENGTH)) {
        // Once more: something else may have happened meanwhile.
        const isSlow = () => timeOf(() => matches(text)) > LIMIT_MS
        assert.ok(!(isSlow() && isSlow()), `${place}: ${glob.slice(0, 40)} of ${text.slice(0, 20)}`)
        tried++
      }
    }
  assert.ok(tried > 100, String(tried))
  t.comment(`${tried} pairs of pattern and text`)
})

/** What expressions refuse, each with a word of why. */
const REFUSED: readonly (readonly [expression: string, why: RegExp])[] = [
  [
    'request.path.matches("(a+)+$")',
    /matches\(\) is not supported, because a regular expression can be too slow/,
  ],
  [`${'('.repeat(500)}true${')'.repeat(500)}`, /maxDepth|nested|deep/i],
  [`${'!'.repeat(1_000)}true`, /maxDepth|nested|deep|steps|maxAstNodes/i],
  [Array.from({ length: 400 }, () => 'true').join(' && '), /steps|long|nested|maxDepth|maxAstNodes/i],
  [`request.path in [${Array.from({ length: 500 }, () => '"a"').join(',')}]`, /maxListElements|list|steps/i],
  [`[${'1,'.repeat(150)}1].all(x, [${'1,'.repeat(150)}1].all(y, x == y))`, /cannot be nested in another/],
  [`verdict.evidence.all(e, ${Array.from({ length: 90 }, () => 'e != "crawls"').join('&&')})`, /steps/],
  ['verdict.evidence.map(e, e + e)', /not supported/],
  [`request.path == "${'a'.repeat(3_000)}"`, /2048/],
  ['request.constructor.constructor("return process") == "a"', /constructor/],
  ['request.headers["__proto__"].contains("a") && nothing', /nothing|unknown/i],
]

test('expressions without an end are refused, and said why', async () => {
  for (const [expression, why] of REFUSED)
    assert.throws(
      () => parsePolicy({ rules: [{ name: 'x', when: { expression }, action: 'block' }] }),
      (error: Error) => {
        assert.ok(error instanceof Fault, error.stack)
        assert.equal(error.code, 'POLICY_INVALID')
        assert.match(error.message, /rules\.0\.when\.expression/)
        assert.match(error.message, why, expression.slice(0, 60))
        return true
      },
      expression.slice(0, 60),
    )
})

test('expressions that are taken take as long as there is text, however much they ask of it', async (t) => {
  const asked = [
    'request.headers["x-a"].contains("a".lowerAscii() + "b")',
    `request.headers["x-a"].contains("${A}b")`,
    `request.headers["x-a"].lastIndexOf("b${A}") > 0`,
    'request.headers["x-a"].lowerAscii().upperAscii().trim().substring(1).endsWith("b")',
    '[request.headers["x-a"], request.path, request.query].exists(s, s.contains("aab"))',
    `"${A}".contains(request.headers["x-a"])`,
  ]
  for (const expression of asked) {
    const decides = deciding({ expression })
    for (const text of TEXTS(LENGTH)) {
      const isSlow = () => timeOf(() => decides(text)) > LIMIT_MS
      assert.ok(!(isSlow() && isSlow()), `${expression.slice(0, 60)} of ${text.slice(0, 20)}`)
    }
  }
  t.comment(`${asked.length} expressions`)
})

test('a policy, or a list, that is too much is refused as a whole, and named', async () => {
  const rule = (number: number) => ({ name: `r${number}`, when: { path: '/*' }, action: 'block' })
  const many = Array.from({ length: 1_001 }, (_, number) => rule(number))
  const deep = Array.from({ length: 5_000 }).reduce<unknown>((inner) => ({ not: inner }), { path: '/' })
  for (const policy of [{ rules: many }, { rules: [{ name: 'deep', when: deep, action: 'block' }] }])
    assert.throws(
      () => parsePolicy(policy),
      (error: Error) => error instanceof Fault && error.code === 'POLICY_INVALID',
    )
})

function deciding(when: Readonly<Record<string, unknown>>): (text: string) => unknown {
  const policy = parsePolicy({ rules: [{ name: 'x', when, action: 'block' }] })
  return (text) =>
    decide(
      policy,
      {
        ...{ method: 'GET', host: text, path: `/${text}?${text}`, address: '192.0.2.1', verdict: UNKNOWN },
        ...{ rawHeaders: ['host', 'a', 'x-a', text], forged: [] },
        print: { connection: NOTHING_KNOWN, ja4h: null },
      },
      0,
    )
}

function software(signatures: readonly unknown[]) {
  return parseSoftwareList([{ id: 'x', name: 'X', kind: 'tool', signatures }])
}

/** `null`: it is not a pattern there, and a Fault says so. */
function refusedOr<Made>(make: () => Made): Made | null {
  try {
    return make()
  } catch (error) {
    assert.ok(error instanceof Fault, (error as Error).stack)
    return null
  }
}

function timeOf(work: () => unknown): number {
  const startMs = performance.now()
  work()
  return performance.now() - startMs
}
