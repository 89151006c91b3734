/** A reason why a process should get no requests now. */
export interface UnreadyReason {
  /** For programs: it never changes its meaning. */
  readonly code: UnreadyCode
  /** For people: where it is, and what to do. */
  readonly detail: string
}

export const UNREADY_CODES = [
  /** It has not finished its start. */
  'starting',
  /** It was told to stop. */
  'draining',
  /** No worker takes connections. */
  'no_worker',
  /** It has no Snapshot of its fleet yet (`bus.first_snapshot`). */
  'first_snapshot',
  /** The catalogue in the database is being filled for the first time. */
  'catalogue',
  /** The database is unreachable. */
  'database',
  /** An upstream has no healthy target (`proxy.ready: upstream`). */
  'upstream',
  /** The port for clients has no certificate yet. */
  'certificate',
] as const

export type UnreadyCode = (typeof UNREADY_CODES)[number]

export const STARTING: UnreadyReason = { code: 'starting', detail: 'it has not finished its start' }
export const DRAINING: UnreadyReason = { code: 'draining', detail: 'it was told to stop' }
export const NO_WORKER: UnreadyReason = { code: 'no_worker', detail: 'no worker is running' }

/** Reasons that follow from the state alone. */
export function reasonsOfState(state: 'starting' | 'serving' | 'draining'): readonly UnreadyReason[] {
  if (state === 'serving') return []
  return [state === 'starting' ? STARTING : DRAINING]
}
