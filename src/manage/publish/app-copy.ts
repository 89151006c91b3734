import * as z from 'zod'
import { QUOTA_WINDOWS } from '../../apps/app.ts'
import type { AppRecord } from '../../store/work/apps.ts'
import { DiskCopy } from './disk-copy.ts'

/** The apps of the database at one moment. */
export interface KeptApps {
  /** Identifies the last change; `null`: there was none yet. */
  readonly change: unknown
  readonly records: readonly AppRecord[]
}

/** A copy of the last apps in force. Without it, only the apps of the settings are in force until the database answers. */
export class AppCopy extends DiskCopy<KeptApps> {
  constructor(file: string) {
    super(file, KEPT, 'apps')
  }
}

const RECORD = z.object({
  id: z.string(),
  name: z.string(),
  team: z.string().nullable(),
  hosts: z.array(z.string()),
  upstream: z.string().nullable(),
  labels: z.array(z.string()),
  /** Earlier versions do not write it. */
  quota: z.partialRecord(z.enum(QUOTA_WINDOWS), z.int()).nullable().default(null),
  createdAtMs: z.int(),
  updatedAtMs: z.int(),
})
const KEPT = z.object({ change: z.unknown(), records: z.array(RECORD) })
