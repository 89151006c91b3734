import type { FunctionComponent } from 'preact'
import { lazy } from 'preact-iso'
import type { Scope } from './api/operations.ts'

/** A page and its subpages. Each is a separate file, loaded on the first visit. */
export const PAGES: readonly [PageEntry, ...PageEntry[]] = [
  {
    title: 'Overview',
    path: '/dashboard',
    scope: 'read',
    isByApp: true,
    range: 'always',
    routes: [
      {
        path: '/dashboard',
        component: lazy(() => import('./pages/overview/overview.tsx').then(({ Overview }) => Overview)),
      },
    ],
  },
  {
    title: 'Live',
    path: '/dashboard/live',
    scope: 'read',
    isByApp: true,
    routes: [
      {
        path: '/dashboard/live',
        component: lazy(() => import('./pages/live/live.tsx').then(({ Live }) => Live)),
      },
    ],
  },
  {
    title: 'Traffic',
    path: '/dashboard/traffic',
    scope: 'read',
    isByApp: true,
    range: 'optional',
    routes: [
      {
        path: '/dashboard/traffic',
        component: lazy(() => import('./pages/traffic/traffic.tsx').then(({ Traffic }) => Traffic)),
      },
      {
        path: '/dashboard/traffic/:id',
        component: lazy(() => import('./pages/traffic/request.tsx').then(({ RequestPage }) => RequestPage)),
      },
    ],
  },
  {
    title: 'Agents',
    path: '/dashboard/agents',
    scope: 'read',
    isByApp: true,
    range: 'optional',
    routes: [
      {
        path: '/dashboard/agents',
        component: lazy(() => import('./pages/agents/agents.tsx').then(({ Agents }) => Agents)),
      },
      {
        path: '/dashboard/agents/:agent_id',
        component: lazy(() => import('./pages/agents/agent.tsx').then(({ AgentPage }) => AgentPage)),
      },
    ],
  },
  {
    title: 'Threats',
    path: '/dashboard/threats',
    scope: 'read',
    isByApp: true,
    routes: [
      {
        path: '/dashboard/threats',
        component: lazy(() => import('./pages/threats/threats.tsx').then(({ Threats }) => Threats)),
      },
      {
        path: '/dashboard/threats/campaigns',
        component: lazy(() => import('./pages/threats/campaigns.tsx').then(({ Campaigns }) => Campaigns)),
      },
      {
        path: '/dashboard/threats/campaigns/:id',
        component: lazy(() =>
          import('./pages/threats/campaign.tsx').then(({ CampaignPage }) => CampaignPage),
        ),
      },
      {
        path: '/dashboard/threats/:id',
        component: lazy(() => import('./pages/threats/case.tsx').then(({ CasePage }) => CasePage)),
      },
    ],
  },
  {
    title: 'Signatures',
    path: '/dashboard/signatures',
    scope: 'read',
    routes: [
      {
        path: '/dashboard/signatures',
        component: lazy(() =>
          import('./pages/signatures/signatures.tsx').then(({ Signatures }) => Signatures),
        ),
      },
      {
        path: '/dashboard/signatures/unknown',
        component: lazy(() =>
          import('./pages/signatures/signatures.tsx').then(({ UnknownSignatures }) => UnknownSignatures),
        ),
      },
      {
        path: '/dashboard/signatures/map',
        component: lazy(() => import('./pages/signatures/map.tsx').then(({ StackMap }) => StackMap)),
      },
      {
        path: '/dashboard/signatures/submissions',
        component: lazy(() =>
          import('./pages/signatures/submissions.tsx').then(({ Submissions }) => Submissions),
        ),
      },
      {
        path: '/dashboard/signatures/submissions/:id',
        component: lazy(() =>
          import('./pages/signatures/submission.tsx').then(({ SubmissionPage }) => SubmissionPage),
        ),
      },
      {
        path: '/dashboard/signatures/:type/:fingerprint',
        component: lazy(() =>
          import('./pages/signatures/signature.tsx').then(({ SignaturePage }) => SignaturePage),
        ),
      },
    ],
  },
  {
    title: 'Explore',
    path: '/dashboard/explore',
    scope: 'detect',
    routes: [
      {
        path: '/dashboard/explore',
        component: lazy(() => import('./pages/explore/explore.tsx').then(({ Explore }) => Explore)),
      },
    ],
  },
  {
    title: 'Policy',
    path: '/dashboard/policy',
    scope: 'admin',
    isByApp: true,
    withoutApp: 'the organisation',
    routes: [
      {
        path: '/dashboard/policy',
        component: lazy(() => import('./pages/policy/policy.tsx').then(({ PolicyPage }) => PolicyPage)),
      },
    ],
  },
  {
    title: 'Events',
    path: '/dashboard/events',
    scope: 'read',
    isByApp: true,
    range: 'optional',
    routes: [
      {
        path: '/dashboard/events',
        component: lazy(() => import('./pages/events/events.tsx').then(({ Events }) => Events)),
      },
      {
        path: '/dashboard/events/:id',
        component: lazy(() => import('./pages/events/event.tsx').then(({ EventPage }) => EventPage)),
      },
    ],
  },
  {
    title: 'Payments',
    path: '/dashboard/payments',
    scope: 'read',
    isByApp: true,
    range: 'optional',
    routes: [
      {
        path: '/dashboard/payments',
        component: lazy(() => import('./pages/payments/payments.tsx').then(({ Payments }) => Payments)),
      },
    ],
  },
  {
    title: 'Webhooks',
    path: '/dashboard/webhooks',
    scope: 'admin',
    routes: [
      {
        path: '/dashboard/webhooks',
        component: lazy(() => import('./pages/webhooks/webhooks.tsx').then(({ Webhooks }) => Webhooks)),
      },
      {
        path: '/dashboard/webhooks/deliveries/:id',
        component: lazy(() =>
          import('./pages/webhooks/delivery.tsx').then(({ DeliveryPage }) => DeliveryPage),
        ),
      },
      {
        path: '/dashboard/webhooks/:id',
        component: lazy(() => import('./pages/webhooks/webhook.tsx').then(({ WebhookPage }) => WebhookPage)),
      },
    ],
  },
  {
    title: 'Fleet',
    path: '/dashboard/fleet',
    scope: 'admin',
    isForAllApps: true,
    routes: [
      {
        path: '/dashboard/fleet',
        component: lazy(() => import('./pages/fleet/fleet.tsx').then(({ Fleet }) => Fleet)),
      },
    ],
  },
  {
    title: 'Settings',
    path: '/dashboard/settings',
    scope: 'admin',
    routes: [
      {
        path: '/dashboard/settings/:tab?',
        component: lazy(() => import('./pages/settings/settings.tsx').then(({ Settings }) => Settings)),
      },
    ],
  },
  {
    title: 'Help',
    path: '/dashboard/help',
    scope: null,
    routes: [
      {
        path: '/dashboard/help',
        component: lazy(() => import('./pages/help/help.tsx').then(({ Help }) => Help)),
      },
      {
        path: '/dashboard/help/:topic',
        component: lazy(() => import('./pages/help/help.tsx').then(({ HelpTopic }) => HelpTopic)),
      },
    ],
  },
]

export interface PageEntry {
  readonly title: string
  readonly path: string
  /** Without this scope the page is empty. `null`: every user has it. */
  readonly scope: Scope | null
  /** Only for users with access to all apps. */
  readonly isForAllApps?: boolean
  /** Shows one app, or all of them. */
  readonly isByApp?: boolean
  /** What it shows if no app is chosen, and only to users with access to all apps. Default: all apps. */
  readonly withoutApp?: string
  /** Shows a time range. `optional`: all times without one in the address. */
  readonly range?: 'always' | 'optional'
  readonly routes: readonly { readonly path: string; readonly component: FunctionComponent }[]
}
