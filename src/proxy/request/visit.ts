import type { Proofs } from '../../classify/verdict/proof.ts'
import type { Connection } from '../connection/connection.ts'
import type { Judged } from './judge.ts'
import type { PendingProofs } from './prover.ts'
import type { ReceivedHead } from '../connection/received-head.ts'
import type { Refusal } from './refuse.ts'
import type { UpstreamGroup } from '../upstream/upstream.ts'

/** A request, or a connection that asks to become something else. Exactly one of the doors is taken. */
export interface Visit {
  readonly connection: Connection
  readonly head: ReceivedHead
  /** The host it is for: as sent, or as we supply it (`suppliedHost`). */
  readonly authority: string
  /** `go` follows when they are there: once, also where the client leaves before that. */
  wait(pending: PendingProofs, go: (proofs: Proofs, isGone: boolean) => void): void
  /** Nobody is there any more to be answered. */
  left(judged: Judged): void
  /** To the app: with all that is known and the rule's own headers, or with `null` untagged. */
  pass(judged: Judged, upstream: UpstreamGroup, ruleHeaders: readonly string[] | null): void
  answer(judged: Judged, refusal: Refusal): void
  /** `answer` comes later: `letGo` is called if the client leaves before that. */
  hold(judged: Judged, letGo: () => void): void
}
