import * as z from 'zod'
import type { AuditEntry } from '../../store/people/audit.ts'
import { type ApiOffered, listing } from './operation.ts'
import { time, timeOf } from '../http/schemas.ts'

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
    detail: z.record(z.string(), z.unknown()),
    address: z.string().nullable(),
    request_id: z.string().nullable(),
  })
  .meta({ id: 'AuditEntry' })

function filter(description: string) {
  return z
    .string()
    .min(1, 'is empty')
    .max(200, 'is longer than 200 characters')
    .optional()
    .meta({ description })
}

const listAudit = listing({
  id: 'listAudit',
  path: '/audit',
  tag: 'Administration',
  summary: 'Read the audit log',
  description:
    'Changes and the principals that made them, newest first. Entries older than `store.audit_retention` are deleted.',
  scopes: ['admin'],
  name: 'audit',
  isPartFirst: true,
  filters: {
    action: filter('Only this action.'),
    principal: filter('Only changes by this principal.'),
    since: z.iso
      .datetime({ offset: true, error: 'must be a time (RFC 3339)' })
      .optional()
      .meta({ description: 'Only entries from this time on.' }),
  },
  part: ({ action = null, principal = null, since }, part, { store }) => {
    const sinceMs = since === undefined ? null : Date.parse(since)
    return store.audit.list(part, { action, principal, sinceMs })
  },
  items: { schema: auditEntry, show: (entries) => entries.map(shown) },
})

export const AUDIT_OPERATIONS: readonly ApiOffered[] = [listAudit]

function shown({ id, atMs, principal, action, subject, detail, address, requestId }: AuditEntry) {
  return { id, at: timeOf(atMs), principal, action, subject, detail, address, request_id: requestId }
}
