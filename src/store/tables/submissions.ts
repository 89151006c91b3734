export type SubmissionTables = Record<never, never>
