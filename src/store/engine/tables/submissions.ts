import type { Category } from '../../../classify/known/software.ts'

export interface SubmissionTables {
  submissions: SubmissionTable
  trials: TrialTable
  feedback: FeedbackTable
  feedback_fingerprints: FeedbackFingerprintTable
}

/** A submitted fingerprint and its outcome. */
export interface SubmissionTable {
  id: string
  created_at_ms: number
  /** The id of the submitting principal. */
  principal: string
  type: 'ja4' | 'ja4s' | 'ja4h' | 'ja4x'
  value: string
  /** As written by the submitter. */
  agent_name: string | null
  /** The software it is for: known before, or set on acceptance. */
  software_id: string | null
  category: Category | null
  /** JSON: a list of purposes. */
  purposes: string
  user_agent: string | null
  notes: string | null
  status: SubmissionStatus
  /** JSON: findings at submission time, as `{code, detail}`. */
  reasons: string
  /** The earlier submission. */
  duplicate_of: string | null
  /** Accepting it created its software: 0 or 1. */
  made_software: number
  decided_at_ms: number | null
  /** The id of a principal, or `analysis`. */
  decided_by: string | null
  /** When its acceptance was rolled back. */
  rolled_back_at_ms: number | null
}

export type SubmissionStatus = 'pending' | 'accepted' | 'rejected' | 'duplicate'

/** The live traffic of a fingerprint since its submission. Counted while a submission of it is pending. */
export interface TrialTable {
  type: 'ja4' | 'ja4s' | 'ja4h' | 'ja4x'
  value: string
  since_ms: number
  /** 0 or 1: it is being counted. */
  is_open: number
  hits: number
  first_hit_ms: number | null
  last_hit_ms: number | null
  /** The state of the estimate of distinct addresses. */
  addresses: string
  /** JSON: how often each verdict occurred. */
  verdicts: string
}

/** An operator's feedback on a decision. */
interface FeedbackTable {
  id: string
  /** The id of a request, or of an answer of `/detect`. One feedback each. */
  decision_id: string
  at_ms: number
  principal: string
  /** The correct answer according to the operator. */
  told: 'agent' | 'human'
  told_software_id: string | null
  /** The verdict of the decision. */
  verdict: string
  verdict_software_id: string | null
}

/** The fingerprints of the decided request. */
interface FeedbackFingerprintTable {
  decision_id: string
  type: 'ja4' | 'ja4s' | 'ja4h' | 'ja4x'
  value: string
}
