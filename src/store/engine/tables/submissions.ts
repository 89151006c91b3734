import type { Category } from '../../../classify/known/software.ts'

export interface SubmissionTables {
  submissions: SubmissionTable
  trials: TrialTable
  feedback: FeedbackTable
  feedback_fingerprints: FeedbackFingerprintTable
}

/** A fingerprint that somebody has sent in, and what became of it. */
export interface SubmissionTable {
  id: string
  created_at_ms: number
  /** The id of the principal who sent it. */
  principal: string
  type: 'ja4' | 'ja4s' | 'ja4h' | 'ja4x'
  value: string
  /** As it was written. */
  agent_name: string | null
  /** Of the software it is for: one that was known, or what it was accepted for. */
  software_id: string | null
  category: Category | null
  user_agent: string | null
  notes: string | null
  status: SubmissionStatus
  /** JSON: what was found about it when it came in, as `{code, detail}`. */
  reasons: string
  /** The submission that was there before it. */
  duplicate_of: string | null
  /** Accepting it has made its software: 0 or 1. */
  made_software: number
  decided_at_ms: number | null
  /** The id of a principal; `analysis`. */
  decided_by: string | null
  /** Accepted, and taken back. */
  rolled_back_at_ms: number | null
}

export type SubmissionStatus = 'pending' | 'accepted' | 'rejected' | 'duplicate'

/** What live traffic has shown of a fingerprint since somebody has sent it in; it is counted while one of them waits. */
export interface TrialTable {
  type: 'ja4' | 'ja4s' | 'ja4h' | 'ja4x'
  value: string
  since_ms: number
  /** 0 or 1: it is being counted. */
  is_open: number
  hits: number
  first_hit_ms: number | null
  last_hit_ms: number | null
  /** How many distinct addresses there were is estimated by this. */
  addresses: string
  /** JSON: how often each verdict was passed on it. */
  verdicts: string
}

/** What an operator says of a decision. */
export interface FeedbackTable {
  id: string
  /** Of a request that was seen, or of an answer of `/detect`: one piece of feedback each. */
  decision_id: string
  at_ms: number
  principal: string
  /** What it was in truth. */
  told: 'agent' | 'human'
  told_software_id: string | null
  /** What it was held for. */
  verdict: string
  verdict_software_id: string | null
}

/** The fingerprints of what was decided. */
export interface FeedbackFingerprintTable {
  decision_id: string
  type: 'ja4' | 'ja4s' | 'ja4h' | 'ja4x'
  value: string
}
