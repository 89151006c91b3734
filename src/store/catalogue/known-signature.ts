import type { Ja4Type } from '../../classify/known/fingerprint-form.ts'
import type { SoftwareKind } from '../../classify/known/software.ts'
import type { Queries } from '../engine/database.ts'
import type { SignatureSource, SignatureStatus } from '../engine/tables/catalogue.ts'

/** A signature with its owner and its live traffic. */
export interface KnownSignature {
  readonly type: Ja4Type
  readonly value: string
  readonly firstSeenMs: number
  /** On live traffic; `null`: never seen. */
  readonly lastSeenMs: number | null
  /** A description of where it was measured; `null`: only seen on live traffic. */
  readonly provenance: string | null
  /** The observations where it was measured. */
  readonly observations: number
  /** Requests with it on live traffic. */
  readonly requestsSeen: number
  readonly confidence: number
  readonly source: SignatureSource
  readonly status: SignatureStatus
  /** A match identifies the agent when no other evidence does. */
  readonly isDecisive: boolean
  /** `null`: no owner is known. */
  readonly software: { readonly id: string; readonly name: string; readonly kind: SoftwareKind } | null
}

/** Signatures joined with their software and live traffic. */
export function knownIn(db: Queries) {
  return db
    .selectFrom('signatures')
    .leftJoin('software', 'software.id', 'signatures.software_id')
    .leftJoin('fingerprints_seen as seen', (join) =>
      join.onRef('seen.type', '=', 'signatures.type').onRef('seen.value', '=', 'signatures.value'),
    )
    .selectAll('signatures')
    .select(['software.name', 'software.kind', 'seen.last_seen_ms', 'seen.requests'])
}

type KnownRow = Awaited<ReturnType<ReturnType<typeof knownIn>['execute']>>[number]

export function knownSignature(row: KnownRow): KnownSignature {
  const { software_id: id, name, kind } = row
  const isNamed = id !== '' && name !== null && kind !== null
  // One object literal, because a lookup creates hundreds of these.
  return {
    type: row.type,
    value: row.value,
    firstSeenMs: row.first_seen_ms,
    lastSeenMs: row.last_seen_ms,
    provenance: row.provenance,
    observations: row.observations,
    requestsSeen: row.requests ?? 0,
    confidence: row.confidence,
    source: row.source,
    status: row.status,
    isDecisive: row.is_decisive === 1 && row.status === 'active' && kind === 'agent',
    software: isNamed ? { id, name, kind } : null,
  }
}

/** A fingerprint that is known only from live traffic. */
export function seenOnly(row: {
  readonly type: Ja4Type
  readonly value: string
  readonly first_seen_ms: number
  readonly last_seen_ms: number
  readonly requests: number
}): KnownSignature {
  return {
    type: row.type,
    value: row.value,
    source: 'observed',
    status: 'unknown',
    isDecisive: false,
    firstSeenMs: row.first_seen_ms,
    lastSeenMs: row.last_seen_ms,
    provenance: null,
    observations: row.requests,
    requestsSeen: row.requests,
    confidence: 0,
    software: null,
  }
}
