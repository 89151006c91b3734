import type { Proofs } from '../../classify/verdict/proof.ts'
import type { Connection } from '../connection/connection.ts'
import type { Judged } from './judge.ts'
import type { McpReading } from '../../wire/mcp/mcp-message.ts'
import type { McpMessageReader } from './mcp/message-reader.ts'
import type { Paid } from './pay/paid-exchange.ts'
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
  /** Reads the message for an MCP server in the body. `go` is called as in `wait`. */
  readMessage(reader: McpMessageReader, go: (reading: McpReading, isGone: boolean) => void): void
  /** The client has disconnected. */
  left(judged: Judged): void
  /**
   * Forwards to the app. `ruleHeaders` are the rule's own headers, sent with all tags. `null`: without tags. `paid`: the
   * client has paid for the answer.
   */
  pass(
    judged: Judged,
    upstream: UpstreamGroup,
    ruleHeaders: readonly string[] | null,
    paid?: Paid | null,
  ): void
  answer(judged: Judged, refusal: RefusalAnswer): void
  /** `answer` or `pass` follows later. `letGo` is called if the client disconnects before. */
  hold(judged: Judged, letGo: () => void): void
}
