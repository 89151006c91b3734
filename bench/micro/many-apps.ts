import { PolicyCompiler } from '../../src/plane/snapshot-policies.ts'
import type { Facts } from '../../src/policy/facts.ts'
import { decide } from '../../src/policy/decide.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { PolicyRequest } from '../../src/policy/request.ts'
import { UNKNOWN } from '../../src/classify/verdict/verdict.ts'

/**
 * What a decision costs with 200 apps of 200 rules each: for requests of one app, and for requests of another app each time,
 * whose rules are no longer in the caches of the processor. Both take turns in each round, and the figure is the best round. Also
 * the memory of the compiled rules.
 */
async function main(): Promise<void> {
  const before = heapBytes()
  const appPolicies = Array.from({ length: APPS }, (_, app) => ({
    app: `app-${app}`,
    document: documentOf(app),
  }))
  const texts = appPolicies.reduce((sum, { document }) => sum + document.length, 0)
  const compiler = new PolicyCompiler()
  const compiled = await compiler.compile({ policy: {}, appPolicies }, null)
  const policies = [...compiled.appPolicies.values()]
  const bytes = heapBytes() - before - texts
  const [one, all]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    one.push(nanoseconds(policies, 0))
    all.push(nanoseconds(policies, 1))
  }
  const [ofOne, ofAll] = [Math.min(...one), Math.min(...all)]
  process.stdout.write(
    [
      `${APPS} apps of ${RULES} rules`,
      `  one app for all requests       ${ofOne.toFixed(0).padStart(7)} ns`,
      `  another app for each request   ${ofAll.toFixed(0).padStart(7)} ns, ${(ofAll / ofOne).toFixed(2)} times`,
      `  memory of a compiled rule      ${(bytes / APPS / RULES).toFixed(0).padStart(7)} bytes`,
      '',
    ].join('\n'),
  )
  if (compiler === null) throw new Error('it keeps its texts until here')
}

/** Of a decision for which no rule holds. `step`: to the app of the next request. */
function nanoseconds(policies: readonly Policy[], step: number): number {
  const request = new PolicyRequest()
  const startedMs = performance.now()
  for (let run = 0, app = 0; run < RUNS; run++, app = (app + step) % policies.length)
    decide(policies[app]!, FACTS, 0, request)
  return ((performance.now() - startedMs) * 1e6) / RUNS
}

function documentOf(app: number): string {
  const rules = Array.from({ length: RULES }, (_, rule) => ({
    name: `rule ${rule}`,
    when: { path: `/app-${app}/part-${rule}/*` },
    action: 'block',
  }))
  return JSON.stringify({ rules })
}

function heapBytes(): number {
  for (let times = 0; times < 3; times++) globalThis.gc!()
  return process.memoryUsage().heapUsed
}

const APPS = 200
const RULES = 200
const ROUNDS = 100
const RUNS = 400
const FACTS: Facts = {
  method: 'GET',
  host: 'shop.example',
  path: '/app-0/none',
  address: '192.0.2.1',
  rawHeaders: [],
  print: { connection: { ja4: null, stable: null, http2: null, noHello: null }, ja4h: null },
  verdict: UNKNOWN,
  forged: [],
}

await main()
