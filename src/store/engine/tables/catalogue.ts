import type { Ja4Type } from '../../../classify/known/fingerprint-form.ts'
import type { Category, SoftwareKind } from '../../../classify/known/software.ts'

export interface CatalogueTables {
  software: SoftwareTable
  software_names: SoftwareNameTable
  signatures: SignatureTable
  catalogue_state: CatalogueStateTable
}

/** All named software: built-in, from feeds, from the operator's files, and created by the API. */
export interface SoftwareTable {
  id: string
  name: string
  kind: SoftwareKind
  /** For agents only. */
  category: Category | null
  description: string | null
  /** All names and the description, in lower case. */
  search: string
  /** The entry in a signature file as JSON, without fingerprints, which have a table of their own. */
  document: string
  origin: SoftwareOrigin
  /** The earliest date of its signatures. */
  first_seen_ms: number
}

/** If several origins have an id, the later one wins. `api`: only the API has it. */
type SoftwareOrigin = 'builtin' | 'feed' | 'own' | 'api'

/** The names of software: id, name and aliases, as written and normalized. */
export interface SoftwareNameTable {
  name: string
  software_id: string
}

/** A fingerprint that belongs to software. If it was only observed often, it has no owner yet. */
export interface SignatureTable {
  type: Ja4Type
  /** Whole parts may be `*`. */
  value: string
  /** Empty: no owner is known. */
  software_id: string
  /** The second part of the fingerprint. */
  part_b: string
  /** The third part of the fingerprint. */
  part_c: string
  status: SignatureStatus
  source: SignatureSource
  /** A description of where it was measured. */
  provenance: string
  first_seen_ms: number
  /**
   * Connections or requests at the origin of the signature. Live traffic is counted in `fingerprints_seen`.
   */
  observations: number
  /** The probability that a match is this software, from 0 to 1. */
  confidence: number
  /** 1: while active, a match identifies this software if it is an agent. */
  is_decisive: 0 | 1
}

/** `active`: used to classify; `trial`: only counted; `unknown`: no owner; `retired`: withdrawn. */
export type SignatureStatus = 'active' | 'trial' | 'unknown' | 'retired'

/** `builtin`: from files of any origin. */
export type SignatureSource = 'builtin' | 'submitted' | 'observed'

/** One row: the files that these tables were last made equal to. */
interface CatalogueStateTable {
  id: 1
  hash: string
  merged_at_ms: number
}
