import assert from 'node:assert/strict'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { SoftwareNames } from '../../src/classify/known/software-names.ts'
import { ConfigFault } from '../../src/config/source.ts'
import { parsePolicyText } from '../../src/runtime/policy-source.ts'
import { decide } from '../../src/policy/decide.ts'
import { explain } from '../../src/policy/explain.ts'
import type { Facts } from '../../src/policy/facts.ts'
import { PartialPolicies } from '../../src/policy/partial.ts'
import { type Policy, policyWarnings } from '../../src/policy/policy.ts'
import { FACTS, SIGNED } from '../policy/request-facts.ts'
import { filesIn, placesIn, textOf, valueIn } from './config-target.ts'

/**
 * Any text gives a policy, or one ConfigFault with places. A policy decides on every request, as its explanation says, and
 * as itself written as JSON does; what is decided of a request that is known in part only is what is decided of all of it.
 */
export function policy(bytes: Buffer): void {
  const text = textOf(bytes)
  const parsed = parse(text)
  const value = valueIn(text)
  const again = value === undefined ? null : parse(JSON.stringify(value))
  if (again !== null) assert.equal(again instanceof ConfigFault, parsed instanceof ConfigFault)
  if (parsed instanceof ConfigFault) {
    if (again instanceof ConfigFault) assert.equal(again.problems.length, parsed.problems.length)
    return
  }
  assert.ok(policyWarnings(parsed, NAMES).every(({ what }) => what !== ''))
  const partial = new PartialPolicies()
  for (const facts of REQUESTS) {
    const decision = decide(parsed, facts, NOW_MS)
    if (again !== null) assert.deepEqual(decide(again as Policy, facts, NOW_MS), decision)
    const { rules, ...explained } = explain(parsed, facts, NOW_MS)
    assert.deepEqual(explained.decision, decision)
    const deciding = rules.filter(({ decides }) => decides)
    assert.deepEqual(
      deciding.map(({ rule, holds }) => [rule, holds]),
      decision.rule === OTHERWISE ? [] : [[decision.rule, true]],
    )
    const { outcome } = partial.decide(parsed, inPart(facts), NOW_MS)
    if (outcome !== null) assert.equal(outcome.rule, decision.rule)
  }
}

function parse(text: string): Policy | ConfigFault {
  try {
    return parsePolicyText(text, NAME, { upstreams: ['app', 'other'] }).policy
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error
    placesIn(error, text, NAME)
    return error
  }
}

/** As a Sighting keeps it. */
function inPart(facts: Facts): Facts {
  const agent = facts.rawHeaders.findIndex((name, i) => i % 2 === 0 && /^user-agent$/i.test(name))
  const rawHeaders = agent === -1 ? [] : facts.rawHeaders.slice(agent, agent + 2)
  return { ...facts, rawHeaders }
}

export function policySeeds(): Buffer[] {
  const conditions = [
    '{verdict: agent, category: [crawler, llm-sdk], agent: gptbot, software: curl}',
    '{path: [/api/*, "*.php"], host: "*.example.test", method: [GET, POST], address: [192.0.2.0/24, "2001:db8::/32"]}',
    '{header: {accept: "*html*", x-none: false}, user_agent: "*bot*", forged: x-agent-verdict, confidence_min: 0.5}',
    '{evidence: [spoofed-browser], verified: [web-bot-auth, ip-range], hello: not-tls, not: {path: /x}}',
    `{ja4: t13d1516h2_8daaf6152771_e5627efa2ab1, http2: "1:65536|0|0|m,a,s,p"}`,
    `{expression: 'request.path.startsWith("/a") && client.address in ["192.0.2.7"] || verdict.confidence > 0.5'}`,
    `{expression: '"accept" in request.headers && request.headers["accept"].matches("[a-z]+/.*") ? size(request.method) == 3 : false'}`,
  ]
  const actions = [
    'block',
    'pass',
    'tag',
    '{block: {status: 429, body: no}}',
    '{rate_limit: {per: agent, requests: 60, window: 1m}}',
    '{redirect: {to: "https://x.test/", status: 302}}',
    '{route: other}',
    '{tarpit: {delay: 2s}}',
    '{tag: {headers: {X-Is: "{agent}"}}}',
  ]
  const written = conditions.flatMap((when, i) =>
    actions.slice(i % 3).map((action, j) => {
      const rule = `{name: a-${j}, when: ${when}, action: ${action}, dry_run: ${j % 2 === 1}, expires: "2027-01-31T12:00:00Z"}`
      return Buffer.from(`unknown_signer: {wait: 300ms}\nrules:\n- ${rule}\notherwise: ${action}\n`)
    }),
  )
  return [
    ...written,
    ...filesIn('../../config/').filter((file) => file.includes('rules:') && file.length < 4000),
  ]
}

const NAME = 'policy.yaml'
const OTHERWISE = 'otherwise'
const NOW_MS = 1_800_000_000_000
const PLAIN: Facts = { ...FACTS, verdict: { ...FACTS.verdict, proof: SIGNED } }
/** One that everything is known of, one of which nothing is, and one whose path has two forms. */
const REQUESTS: readonly Facts[] = [
  PLAIN,
  {
    ...{ method: 'POST', host: null, path: '*', address: '2001:db8::1', rawHeaders: [], forged: [] },
    print: { connection: { ja4: null, stable: null, http2: null, noHello: 'not-tls' }, ja4h: null },
    verdict: {
      ...{ kind: 'unknown', agent: null, software: null, proof: null, confidence: 0, nameConfidence: 0 },
      ...{ conflicts: [], evidence: [] },
    },
  },
  { ...PLAIN, path: '/x/%2e%2e//API/./a%2fb;c?%00', address: '::ffff:10.0.0.1' },
]
const NAMES = SoftwareNames.of(
  parseSoftwareList([
    { id: 'gptbot', name: 'GPTBot', kind: 'agent', category: 'crawler', aliases: ['bot'] },
    { id: 'curl', name: 'curl', kind: 'tool', aliases: ['bot'] },
  ]),
)
