import * as z from 'zod'
import type { AuditEntry } from '../../store/people/audit.ts'
import { listing } from '../http/listing.ts'
import { time, timeOf } from '../http/schemas.ts'
import type { Offered } from '../http/version.ts'

const auditEntry = z
  .strictObject({
    id: z.string().meta({ example: 'aud_x7c1Jq0aT5b2Lw9k' }),
    at: time,
    principal: z.string().meta({
      description: 'Who: the id of a key, `bootstrap`, `command-line`, `anonymous`, `gatehouse` by itself.',
    }),
    action: z
      .string()
      .meta({ description: 'What: the id of an operation, or a name like it.', example: 'createKey' }),
    subject: z.string().nullable().meta({ description: 'The id of what was changed.' }),
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
  description: 'Who changed what, newest first. Entries older than `store.audit_retention` are forgotten.',
  scopes: ['admin'],
  name: 'audit',
  isPartFirst: true,
  filters: {
    action: filter('Only this.'),
    principal: filter('Only by this one.'),
    since: z.iso
      .datetime({ offset: true, error: 'takes a time (RFC 3339)' })
      .optional()
      .meta({ description: 'From this time on.' }),
  },
  part: ({ action = null, principal = null, since }, part, { store }) => {
    const sinceMs = since === undefined ? null : Date.parse(since)
    return store.audit.list(part, { action, principal, sinceMs })
  },
  items: { schema: auditEntry, show: (entries) => entries.map(shown) },
})

export const AUDIT_OPERATIONS: readonly Offered[] = [listAudit]

function shown({ id, atMs, principal, action, subject, detail, address, requestId }: AuditEntry) {
  return { id, at: timeOf(atMs), principal, action, subject, detail, address, request_id: requestId }
}
