import type { WorkerStatus } from '../../../src/plane/worker-status.ts'
import type { Sighting } from '../../../src/plane/sighting.ts'
import { HOUR_MS, MINUTE_MS, NOW_MS, seen } from '../../contract/seen.ts'
import type { TestManagement } from '../../manage/management.ts'
import { fillCatalogue } from '../catalogue.ts'
import { fillRecords } from './busy-records.ts'

/** The same data in every run, at the same time: what the pictures show of a busy gateway. */
export async function fillBusy(manage: TestManagement): Promise<void> {
  const ask = async (method: string, path: string, body: unknown) => {
    const { status, body: problem } = await manage.ask(method, `/v1${path}`, body, { 'if-match': '*' })
    if (status >= 400) throw new Error(`${method} ${path}: ${problem.detail}`)
  }
  await fillCatalogue(manage.storeUrl)
  await ask('POST', '/apps', { id: 'shop', team: 'retail', hosts: ['shop.example'] })
  await ask('POST', '/apps', { id: 'blog', hosts: ['blog.example'] })
  await ask('PUT', '/policy?comment=Trial%20of%20the%20search%20limit', POLICY)
  await ask('POST', '/keys', { name: 'reports', access: 'read' })
  await ask('POST', '/webhooks', {
    ...{ url: 'https://hooks.example/gatehouse', events: ['new_agent', 'threat_detected'] },
    // A delivery would fail at its own time.
    enabled: false,
  })
  await ask('POST', '/users', { email: 'anna@shop.example', scopes: ['read'] })
  await ask('POST', '/clients', {
    name: 'ticket system',
    grant_types: ['client_credentials'],
    scopes: ['read'],
  })
  await ask('POST', '/signatures/submit', SUBMISSION)
  await ask('POST', '/trust', { jwk: JWK, name: 'Acme Agent', scopes: ['read', 'detect'] })
  await ask('POST', '/signing-keys', { drop_old: false })
  await fillRecords(manage.storeUrl)
  await manage.take(Array.from({ length: REQUESTS }, (_, number) => request(number)))
}

/** Of the `number`th request of the last 48 hours, the newest first. */
function request(number: number): Sighting {
  // More of them by day.
  const hours = 48 * (number / REQUESTS + 0.02 * Math.sin(number / 160))
  const seenAtMs = Math.round(NOW_MS - MINUTE_MS - Math.max(0, hours) * HOUR_MS)
  const [kind, host] = [KINDS[number % KINDS.length]!, number % 3 === 0 ? 'blog' : 'shop']
  return seen(number, {
    ...{ seenAtMs, app: host, host: `${host}.example`, path: PATHS[number % PATHS.length]! },
    ...{ address: `192.0.2.${number % 250}`, evidence: [], forged: [], ...kind },
    ...(number % 17 === 0 && { done: 'block', action: 'block', rule: 'no-training' }),
    ...(number % 13 === 0 && { rule: 'search-limit' }),
    ...(number % 397 === 0 && SPOOFED),
  })
}

const agent = (id: string, purpose: Sighting['purposes'][number]) =>
  ({
    ...{ verdict: 'agent', agent: id, category: 'crawler', confidence: 0.97, purposes: [purpose] },
    ...{ software: id, evidence: ['user-agent'] },
  }) satisfies Partial<Sighting>
const BROWSER = {
  verdict: 'human',
  confidence: 0.9,
  software: 'chrome',
  done: 'pass',
  action: 'pass',
} as const
const SPOOFED = {
  ...{ verdict: 'automation', agent: null, category: null, software: null, purposes: [] },
  ...{ evidence: ['spoofed-browser', 'user-agent'], done: 'block', action: 'block', rule: 'impostors' },
} satisfies Partial<Sighting>
const KINDS: readonly Partial<Sighting>[] = [
  ...[BROWSER, BROWSER, BROWSER, BROWSER],
  ...[agent('gptbot', 'training'), agent('claudebot', 'training'), agent('bingbot', 'search')],
  { ...agent('googlebot', 'search'), verified: 'ip-range' },
  { verdict: 'automation', confidence: 0.8, software: 'curl' },
  { verdict: 'unknown' },
]
const PATHS = ['/', '/articles/1', '/articles/2', '/search', '/cart', '/prices', '/login']
const REQUESTS = 2_000
const POLICY = {
  first: [{ name: 'impostors', when: { evidence: 'spoofed-browser', confidence_min: 0.8 }, action: 'block' }],
  last: [
    { name: 'no-training', when: { purpose: 'training', path: '/articles/*' }, action: 'block' },
    {
      ...{ name: 'search-limit', when: { category: 'crawler', path: '/search*' }, dry_run: true },
      action: { rate_limit: { per: 'agent', requests: 10, window: '1m' } },
    },
    { name: 'tools', when: { verdict: 'automation', path: '/login' }, action: 'tarpit' },
  ],
}
const SUBMISSION = {
  ...{ fingerprint: 't13d0907h2_aaaaaaaaaaaa_bbbbbbbbbbbb', type: 'ja4' },
  ...{ agent_name: 'Acme Agent', category: 'orchestrator' },
}
/** A public key. */
const JWK = {
  ...{ kty: 'EC', crv: 'P-256', x: 'IFws2kLVCibI3uTo-H58PnHzoucuXpUoDV2_AvMniPQ' },
  y: '9J9PPfqlSwtaOf9bClK9ClioDHsE2bYTqGtuz7zKmGQ',
}

const WORKER: WorkerStatus = {
  ...{ number: 0, pid: 100, state: 'serving', sinceMs: NOW_MS - HOUR_MS, snapshot: 1, dropped: 0 },
  unready: [],
}
export const WORKERS: readonly WorkerStatus[] = [
  WORKER,
  { ...WORKER, number: 1, unready: ['upstream app: no target is healthy'] },
]
