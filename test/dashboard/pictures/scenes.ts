import type { Page } from 'playwright-core'
import { seen } from '../../contract/seen.ts'
import type { TestManagement } from '../../manage/management.ts'

/** A page of the dashboard in one state. */
export interface Scene {
  /** Of its picture. */
  readonly name: string
  /** `signed-out`: without a session. */
  readonly state: 'busy' | 'empty' | 'failing' | 'signed-out'
  /** Below `/dashboard/`. Of a record with an id of its own: found by asking. */
  readonly path: string | ((manage: TestManagement) => Promise<string>)
  /** It is drawn once this is visible. */
  readonly shows: string | RegExp
  /** Before the picture. */
  readonly prepare?: (page: Page) => Promise<void>
}

const idOf = async (manage: TestManagement, path: string, name: string): Promise<string> =>
  (await manage.ask('GET', `/v1/${path}`)).body[name][0].id
const SPOOFED = 'reason=spoofed_browser&app=shop'
const JA4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'

export const SCENES: readonly Scene[] = [
  // First: by the clock of this machine, the grant has expired long ago, and is deleted after a while.
  { name: 'settings-grants', state: 'busy', path: 'settings/grants', shows: 'Requested scopes' },
  { name: 'overview', state: 'busy', path: '', shows: 'Paths with the most requests' },
  { name: 'live', state: 'busy', path: 'live', shows: 'Latest requests' },
  { name: 'traffic', state: 'busy', path: 'traffic?window=24h', shows: /^Of .* recorded requests?\.$/ },
  { name: 'request', state: 'busy', path: `traffic/${seen(14).id}`, shows: /^Evidence/ },
  { name: 'agents', state: 'busy', path: 'agents?window=24h', shows: 'GPTBot' },
  { name: 'agent', state: 'busy', path: 'agents/gptbot', shows: 'Fingerprints' },
  { name: 'signatures', state: 'busy', path: 'signatures?type=ja4&sort=fingerprint', shows: 'Fingerprint' },
  { name: 'signature', state: 'busy', path: `signatures/ja4/${JA4}`, shows: 'Cipher suites' },
  { name: 'signatures-map', state: 'busy', path: 'signatures/map', shows: 'Point at a dot for details.' },
  { name: 'submissions', state: 'busy', path: 'signatures/submissions', shows: 'Acme Agent' },
  { name: 'explore', state: 'busy', path: 'explore', shows: 'Explore' },
  { name: 'policy', state: 'busy', path: 'policy', shows: /^no requests|\d+ requests$/ },
  {
    ...{ name: 'policy-form', state: 'busy', path: 'policy', shows: /^no requests|\d+ requests$/ },
    prepare: (page) => page.getByRole('button', { name: 'Edit search-limit' }).click(),
  },
  { name: 'events', state: 'busy', path: 'events?types=new_agent', shows: 'New agent: GPTBot' },
  {
    ...{ name: 'event', state: 'busy', shows: 'Confidence' },
    path: async (manage) => `events/${await idOf(manage, 'events?types=new_agent&agent=gptbot', 'events')}`,
  },
  // Cases of the same moment are in no fixed order.
  { name: 'threats', state: 'busy', path: `threats?${SPOOFED}`, shows: /^Spoofed browser/ },
  {
    ...{ name: 'case', state: 'busy', shows: 'Evidence' },
    path: async (manage) => `threats/${await idOf(manage, `cases?${SPOOFED}`, 'cases')}`,
  },
  { name: 'webhooks', state: 'busy', path: 'webhooks', shows: 'https://hooks.example/gatehouse' },
  { name: 'payments', state: 'busy', path: 'payments', shows: '0.01 USD' },
  {
    ...{ name: 'webhook', state: 'busy', shows: 'Deliveries' },
    path: async (manage) => `webhooks/${await idOf(manage, 'webhooks', 'webhooks')}`,
  },
  { name: 'fleet', state: 'busy', path: 'fleet', shows: 'upstream app: no target is healthy' },
  { name: 'settings-keys', state: 'busy', path: 'settings/keys', shows: 'reports' },
  { name: 'settings-clients', state: 'busy', path: 'settings/clients', shows: 'ticket system' },
  { name: 'settings-trust', state: 'busy', path: 'settings/trust', shows: 'Acme Agent' },
  { name: 'settings-users', state: 'busy', path: 'settings/users', shows: 'anna@shop.example' },
  { name: 'settings-signing-keys', state: 'busy', path: 'settings/signing-keys', shows: 'Signs from' },
  { name: 'settings-limits', state: 'busy', path: 'settings/limits', shows: 'limits.free_per_day' },
  { name: 'settings-audit', state: 'busy', path: 'settings/audit', shows: /^createWebhook/ },
  { name: 'help', state: 'busy', path: 'help', shows: 'Help' },
  { name: 'help-policy', state: 'busy', path: 'help/policy', shows: 'Start with a ready-made policy' },
  { name: 'nowhere', state: 'busy', path: 'nowhere', shows: 'Page not found' },
  { name: 'overview-empty', state: 'empty', path: '', shows: 'No requests in the last 24 hours' },
  { name: 'live-empty', state: 'empty', path: 'live', shows: 'Live' },
  { name: 'traffic-empty', state: 'empty', path: 'traffic', shows: /^No .*requests/ },
  { name: 'agents-empty', state: 'empty', path: 'agents?window=1h', shows: /^No / },
  { name: 'threats-empty', state: 'empty', path: 'threats', shows: 'No open cases' },
  { name: 'payments-empty', state: 'empty', path: 'payments', shows: 'No matching payments' },
  { name: 'campaigns-empty', state: 'empty', path: 'threats/campaigns', shows: 'No campaigns found' },
  { name: 'unknown-empty', state: 'empty', path: 'signatures/unknown', shows: 'No unknown fingerprints' },
  { name: 'policy-empty', state: 'empty', path: 'policy', shows: 'No policy saved yet' },
  { name: 'events-empty', state: 'empty', path: 'events', shows: /^No / },
  { name: 'webhooks-empty', state: 'empty', path: 'webhooks', shows: 'No webhooks yet' },
  { name: 'overview-failing', state: 'failing', path: '', shows: /database is unavailable/ },
  { name: 'fleet-failing', state: 'failing', path: 'fleet', shows: /database is unavailable/ },
  { name: 'sign-in', state: 'signed-out', path: '', shows: 'The key is stored until you close this tab.' },
]
