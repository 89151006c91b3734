import * as z from 'zod'
import { appsOf, shownApps } from './app-access.ts'
import type { AuditEntry } from '../../store/people/audit.ts'
import { type ApiOffered, listing } from './operation.ts'
import { textInQuery, time, timeInQuery, timeOf } from '../http/schemas.ts'

const auditEntry = z
  .strictObject({
    id: z.string().meta({ example: 'aud_x7c1Jq0aT5b2Lw9k' }),
    at: time,
    principal: z.string().meta({
      description:
        'The principal: the id of a key, `bootstrap`, `command-line`, `anonymous`, or `gatehouse` for changes that Gatehouse made itself.',
    }),
    action: z
      .string()
      .meta({ description: 'The id of an operation, or a similar name.', example: 'createKey' }),
    subject: z.string().nullable().meta({ description: 'The id of the changed object.' }),
    apps: shownApps.meta({
      description:
        'The apps of the changed object; for a user whose apps were changed, those before and after. `*`: the change was about the whole installation.',
    }),
    detail: z.record(z.string(), z.unknown()),
    address: z.string().nullable(),
    request_id: z.string().nullable(),
  })
  .meta({ id: 'AuditEntry' })

const listAudit = listing({
  id: 'listAudit',
  path: '/audit',
  tag: 'Administration',
  summary: 'Read the audit log',
  description:
    'Changes and the principals that made them, newest first. Callers that are limited to some apps see the changes of objects whose apps are all among theirs, whatever principal made them. Entries older than `store.audit_retention` are deleted.',
  scopes: ['admin'],
  reach: 'filtered',
  name: 'audit',
  isPartFirst: true,
  filters: {
    app: textInQuery(
      'Only changes of objects that have this app. Changes of objects of all apps (`*`) are not among them.',
    ).optional(),
    action: textInQuery('Only this action.').optional(),
    principal: textInQuery('Only changes by this principal.').optional(),
    since: timeInQuery('Only entries from this time on.'),
  },
  part: (
    { app = null, action = null, principal = null, since },
    part,
    { store },
    { principal: { apps } },
  ) => {
    const sinceMs = since === undefined ? null : Date.parse(since)
    return store.audit.list(part, { apps, app, action, principal, sinceMs })
  },
  items: { schema: auditEntry, show: (entries) => entries.map(shown) },
})

export const AUDIT_OPERATIONS: readonly ApiOffered[] = [listAudit]

function shown(entry: AuditEntry) {
  const { id, atMs, principal, action, subject, detail, address, requestId } = entry
  const object = { subject, apps: appsOf(entry), detail }
  return { id, at: timeOf(atMs), principal, action, ...object, address, request_id: requestId }
}
