import * as z from 'zod'
import type { AuditEntry } from '../../store/audit.ts'
import { type AnyOperation, operation } from './operation.ts'
import { links, PAGE_ANSWER, PAGE_FIELDS, time, timeOf } from './schemas.ts'

const auditEntry = z
  .strictObject({
    id: z.string().meta({ example: 'aud_x7c1Jq0aT5b2Lw9k' }),
    at: time,
    principal: z
      .string()
      .meta({ description: 'Who: the id of a key, `bootstrap`, `command-line`, `anonymous`.' }),
    action: z
      .string()
      .meta({ description: 'What: the id of an operation, or a name like it.', example: 'createKey' }),
    subject: z.string().nullable().meta({ description: 'The id of what was changed.' }),
    detail: z.record(z.string(), z.unknown()),
    address: z.string().nullable(),
    request_id: z.string().nullable(),
  })
  .meta({ id: 'AuditEntry' })

const listAudit = operation({
  id: 'listAudit',
  method: 'GET',
  path: '/audit',
  tag: 'Administration',
  summary: 'Read the audit log',
  description: 'Who changed what, newest first. Entries older than `store.audit_retention` are forgotten.',
  scopes: ['admin'],
  query: z.strictObject({
    ...PAGE_FIELDS,
    action: z
      .string()
      .min(1, 'is empty')
      .max(100)
      .optional()
      .meta({ description: 'Only these: `createKey`.' }),
    principal: z
      .string()
      .min(1, 'is empty')
      .max(200)
      .optional()
      .meta({ description: 'Only what this one did.' }),
    since: z.iso
      .datetime({ offset: true, error: 'takes a time (RFC 3339)' })
      .optional()
      .meta({ description: 'Only what is not older.' }),
  }),
  answer: z.strictObject({ audit: z.array(auditEntry), ...PAGE_ANSWER }),
  run: async ({ query, target }, { store, publicUrl }) => {
    const { page, limit, action = null, principal = null, since } = query
    const sinceMs = since === undefined ? null : Date.parse(since)
    const { items, total } = await store.audit.list({ page, limit }, { action, principal, sinceMs })
    return {
      body: { audit: items.map(shown), total, page, limit },
      headers: links(publicUrl, target, { page, limit }, total),
    }
  },
})

export const AUDIT_OPERATIONS: readonly AnyOperation[] = [listAudit]

function shown({ id, atMs, principal, action, subject, detail, address, requestId }: AuditEntry) {
  return { id, at: timeOf(atMs), principal, action, subject, detail, address, request_id: requestId }
}
