import type { Store } from '../../store/store.ts'

/** The parts of the management plane that routes and lists need. */
export interface HttpContext {
  readonly store: Pick<Store, 'idempotency'>
  /** The external URL of the API: `https://gate.example`, without a trailing slash. */
  readonly publicUrl: string
  nowMs(): number
}
