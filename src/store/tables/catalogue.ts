export interface CatalogueTables {
  software: SoftwareTable
  software_names: { name: string; software_id: string }
  signatures: SignatureTable
}

/** Everything that is known by name: what comes with Gatehouse, feeds, the operator's files, what the API has made. */
export interface SoftwareTable {
  id: string
  name: string
  kind: 'agent' | 'tool' | 'browser'
  /** Of agents. */
  category: string | null
  /** As a file of signatures has it, in JSON, less fingerprints, which have a table of their own. */
  document: string
  origin: 'builtin' | 'feed' | 'own' | 'api'
  /** The earliest day of its signatures. */
  first_seen_ms: number
}

/** A fingerprint that points to a Software, or, observed often enough, to nobody yet. */
export interface SignatureTable {
  type: 'ja4' | 'ja4s' | 'ja4h' | 'ja4x'
  value: string
  /** Empty: of nobody. */
  software_id: string
  status: SignatureStatus
  source: 'builtin' | 'submitted' | 'observed'
  /** Where it was measured, in words. */
  provenance: string
  first_seen_ms: number
  /** Connections or requests it was measured on, where it comes from; live traffic is counted in `fingerprints_seen`. */
  observations: number
  confidence: number
}

/** `active`: it judges; `trial`: it is counted and judges nothing; `unknown`: of nobody; `retired`: taken back. */
export type SignatureStatus = 'active' | 'trial' | 'unknown' | 'retired'
