import type { Management } from '../management.ts'

/** The parts of the management plane that the operations of the API need. */
export type ApiContext = Management
