import type { Ja4Type } from '../../../classify/known/fingerprint-form.ts'
import type { Category, SoftwareKind } from '../../../classify/known/software.ts'

export interface CatalogueTables {
  software: SoftwareTable
  software_names: SoftwareNameTable
  signatures: SignatureTable
  catalogue_state: CatalogueStateTable
}

/** Everything that is known by name: what comes with Gatehouse, feeds, the operator's files, what the API has made. */
export interface SoftwareTable {
  id: string
  name: string
  kind: SoftwareKind
  /** Of agents. */
  category: Category | null
  description: string | null
  /** All it is called and described by, in lower case. */
  search: string
  /** As a file of signatures has it, in JSON, less fingerprints, which have a table of their own. */
  document: string
  origin: SoftwareOrigin
  /** The earliest day of its signatures. */
  first_seen_ms: number
}

/** A later one has the last word on an id that an earlier one has, too; `api`: nobody else has it. */
export type SoftwareOrigin = 'builtin' | 'feed' | 'own' | 'api'

/** What Software is called: its id, its name, its aliases, as they are written and as they are compared. */
export interface SoftwareNameTable {
  name: string
  software_id: string
}

/** A fingerprint that points to a Software, or, observed often enough, to nobody yet. */
export interface SignatureTable {
  type: Ja4Type
  /** Whole parts of it may be `*`. */
  value: string
  /** Empty: of nobody. */
  software_id: string
  /** Its second part. */
  part_b: string
  /** Its third. */
  part_c: string
  status: SignatureStatus
  source: SignatureSource
  /** Where it was measured, in words. */
  provenance: string
  first_seen_ms: number
  /** Connections or requests it was measured on, where it comes from; live traffic is counted in `fingerprints_seen`. */
  observations: number
  /** That who has it is this Software, from 0 to 1. */
  confidence: number
  /** 1: where it judges, who has it is this Software, if that is an agent. */
  is_decisive: 0 | 1
}

/** `active`: it judges; `trial`: it is counted and judges nothing; `unknown`: of nobody; `retired`: taken back. */
export type SignatureStatus = 'active' | 'trial' | 'unknown' | 'retired'

/** `builtin`: from files, whoever has written them. */
export type SignatureSource = 'builtin' | 'submitted' | 'observed'

/** One row: the files that these tables were last made the same as. */
export interface CatalogueStateTable {
  id: 1
  hash: string
  merged_at_ms: number
}
