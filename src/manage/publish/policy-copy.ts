import * as z from 'zod'
import type { PolicyRecord } from '../../store/work/policies.ts'
import { DiskCopy } from './disk-copy.ts'

/** A copy of the last policy in force. Without it, a start admits all requests until a database answers. */
export class PolicyCopy extends DiskCopy<PolicyRecord> {
  constructor(file: string) {
    super(file, POLICY_RECORD, 'policy')
  }
}

export const POLICY_RECORD = z.object({
  version: z.int().min(1),
  hash: z.string(),
  author: z.string(),
  restoredVersion: z.int().nullable(),
  createdAtMs: z.int(),
  // A copy of an earlier release has none.
  comment: z.string().nullable().default(null),
  document: z.string(),
})
