import type { Proofs } from '../../classify/verdict/proof.ts'
import type { Connection } from '../connection/connection.ts'
import type { Judged } from './judge.ts'
import type { PendingProofs } from './prover.ts'
import type { ReceivedHead } from '../connection/received-head.ts'
import type { RefusalAnswer } from './refuse.ts'
import type { Trace } from './tracer.ts'
import type { UpstreamGroup } from '../upstream/upstream.ts'

/** A request or an upgrade request. Exactly one of `left`, `pass`, `answer` and `hold` is called. */
export interface Visit {
  readonly connection: Connection
  readonly head: ReceivedHead
  /** The host of the request: as sent, or supplied by the proxy (`suppliedHost`). */
  readonly authority: string
  /** `null`: not traced, or not yet. */
  readonly trace: Trace | null
  /** `go` is called once when the proofs are known, also if the client disconnected meanwhile. */
  wait(pending: PendingProofs, go: (proofs: Proofs, isGone: boolean) => void): void
  /** The client has disconnected. */
  left(judged: Judged): void
  /**
   * Forwards to the app. `ruleHeaders` are the rule's own headers, sent with all tags. `null`: without tags.
   */
  pass(judged: Judged, upstream: UpstreamGroup, ruleHeaders: readonly string[] | null): void
  answer(judged: Judged, refusal: RefusalAnswer): void
  /** `answer` follows later. `letGo` is called if the client disconnects before. */
  hold(judged: Judged, letGo: () => void): void
}
