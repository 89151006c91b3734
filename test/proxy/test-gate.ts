import type { Test } from 'tap'
import type { Knowledge } from '../../src/classify/known/knowledge.ts'
import { AppIndex } from '../../src/apps/app-index.ts'
import { Traffic } from '../../src/classify/verdict/traffic.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { makeSnapshot, parseSnapshot } from '../../src/plane/snapshot.ts'
import { JudgingScratch, type ProxyContext } from '../../src/proxy/request/context.ts'
import { DecisionIds } from '../../src/proxy/connection/decision-id.ts'
import { createHandler } from '../../src/proxy/request/handler.ts'
import { HostGate, type HostSettings } from '../../src/proxy/request/host-gate.ts'
import type { HeaderSettings } from '../../src/proxy/connection/header-rules.ts'
import type { ListenerLimits, ListenerOptions } from '../../src/proxy/worker/listener.ts'
import { AddressSet } from '../../src/wire/ip-address.ts'
import { McpMessageReader } from '../../src/proxy/request/mcp/message-reader.ts'
import { RateLimiter } from '../../src/proxy/request/rate-limiter.ts'
import { receiveTrailers } from '../../src/proxy/connection/request-headers.ts'
import { Toll } from '../../src/proxy/request/pay/toll.ts'
import { UNAVAILABLE } from '../../src/payment/claim.ts'
import { NO_PAYMENTS } from '../../src/payment/payment-terms.ts'
import { Tarpit } from '../../src/proxy/request/tarpit.ts'
import { Upgrades } from '../../src/proxy/request/upgrade.ts'
import { UpstreamGroup, type UpstreamSettings, upstreamCounters } from '../../src/proxy/upstream/upstream.ts'
import { type Front, startFront } from './front.ts'
import { headerRules } from './test-headers.ts'

export interface GatePlan {
  /** The first is where requests go when no rule says otherwise. */
  readonly upstreams: readonly UpstreamSettings[]
  readonly policy?: unknown
  readonly knowledge?: Knowledge
  readonly context?: Partial<ProxyContext>
  readonly hosts?: Partial<HostSettings>
  readonly headers?: Partial<HeaderSettings>
  readonly options?: Partial<Omit<ListenerOptions, 'tls' | 'limits'>>
  readonly limits?: Partial<ListenerLimits>
}

/** One request as the metrics were told of it. */
export interface Done {
  readonly verdict: string
  readonly action: string
  readonly status: number
}

/** Everything a worker has between its listeners and its upstreams, with a clock of the test's own. */
export interface Gate {
  readonly context: ProxyContext
  readonly clock: { nowMs: number }
  readonly secure: Front
  readonly plain: Front
  readonly sightings: readonly Sighting[]
  readonly done: readonly Done[]
  readonly forged: number
  readonly unknownHosts: number
  readonly oddNames: number
  judgeBy(policy: unknown): void
}

const NO_LEDGER = { pay: async () => UNAVAILABLE }
export const ANY_HOST: HostSettings = {
  ...{ hosts: [], unknownHost: 'refuse', sniMismatch: 'allow', requireSni: false },
}

export async function startGate(t: Test, plan: GatePlan): Promise<Gate> {
  const sightings: Sighting[] = []
  const done: Done[] = []
  let forged = 0
  let unknownHosts = 0
  let oddNames = 0
  let number = 0
  const snapshotOf = (policy: unknown) => parseSnapshot(makeSnapshot(++number, policy, 0), plan.knowledge)
  const clock = { nowMs: Date.now() }
  const groups = plan.upstreams.map((settings) => new UpstreamGroup(settings, upstreamCounters()))
  const rules = headerRules(plan.headers)
  const countOdd = (count: number) => {
    oddNames += count
  }
  const context: ProxyContext = {
    name: 'gate.example.test',
    snapshot: snapshotOf(plan.policy ?? { rules: [] }),
    upstreams: new Map(groups.map((group) => [group.name, group])),
    defaultUpstream: groups[0]!,
    apps: new AppIndex([]),
    lacksUpstream: () => {},
    trusted: plan.options?.trusted ?? AddressSet.parse([])!,
    headerRules: rules,
    trailersForApp: (trailers) => receiveTrailers(rules, trailers, countOdd),
    ja4plus: true,
    fail: 'open',
    hostGate: HostGate.for({ ...ANY_HOST, ...plan.hosts }, () => unknownHosts++),
    upgradeIdleTimeoutMs: 0,
    signer: null,
    prover: null,
    messages: new McpMessageReader(1_048_576),
    limiter: new RateLimiter(),
    traffic: new Traffic(),
    scratch: new JudgingScratch(),
    tarpit: new Tarpit(),
    toll: new Toll({ terms: NO_PAYMENTS, rslPath: null, bus: NO_LEDGER, limiter: new RateLimiter(), clock }),
    upgrades: new Upgrades(),
    ids: new DecisionIds(clock.nowMs),
    clock,
    tracer: null,
    accessLog: null,
    publisher: null,
    recorder: { record: (sighting) => void sightings.push(sighting) },
    metrics: {
      detectionBegins: () => 0,
      detectionDone: () => {},
      requestDone: ({ verdict, decision }, status) =>
        void done.push({ verdict: verdict.kind, action: decision.action.kind, status }),
      forgedHeaders: (count) => {
        forged += count
      },
      oddHeaderNames: countOdd,
      connectionFailed: () => {},
      clientTimedOut: () => {},
      connectionSecured: () => {},
    },
    ...plan.context,
  }
  const handlers = createHandler(context)
  const { options = {}, limits = {} } = plan
  const secure = await startFront({ ...handlers, options, limits })
  const plain = await startFront({ ...handlers, options, limits, tls: null })
  t.teardown(async () => {
    await Promise.all([secure.close(), plain.close()])
    context.upgrades.close()
    for (const group of groups) group.close()
  })
  return {
    ...{ context, clock, secure, plain, sightings, done },
    get forged() {
      return forged
    },
    get unknownHosts() {
      return unknownHosts
    },
    get oddNames() {
      return oddNames
    },
    judgeBy(policy) {
      context.snapshot = snapshotOf(policy)
    },
  }
}
