import { serve } from '../adapter.ts'

/** What the protocol costs without a detector. */
await serve(() => 'unknown')
