import type { Verdict } from '../../classify/verdict/verdict.ts'
import type { Print } from '../../fingerprint/print.ts'
import type { Introduction } from '../connection/app-headers.ts'
import type { Connection } from '../connection/connection.ts'
import { areFieldLines, fieldLines } from '../connection/field-syntax.ts'
import { pushForwarding, pushTags, type RelayedFrom } from '../connection/request-headers.ts'

/**
 * Reuses the introduction of the previous request on the connection, or builds a new one. `relayed`: what a
 * trusted proxy reports of this request.
 */
export function introduce(
  connection: Connection,
  authority: string | null,
  relayed: RelayedFrom | null,
  { print, verdict }: { readonly print: Print; readonly verdict: Verdict },
  action: string | null,
): Introduction {
  const last = relayed === null ? connection.introduction : null
  // A cheap comparison: objects that the connection keeps, and short texts.
  const isSame =
    last !== null &&
    last.verdict === verdict &&
    last.print === print.connection &&
    last.action === action &&
    last.ja4h === print.ja4h &&
    last.authority === authority
  if (isSame) return last
  const headers: string[] = []
  pushForwarding(headers, connection, authority, relayed)
  if (action !== null) pushTags(headers, print, verdict, action)
  const lines = fieldLines(headers)
  const made: Introduction = {
    authority,
    print: print.connection,
    ja4h: print.ja4h,
    verdict,
    action,
    headers,
    lines: areFieldLines(lines, headers.length / 2) ? lines : null,
  }
  if (relayed === null && lines.length <= REMEMBERED_LENGTH_MAX) connection.introduction = made
  return made
}

/** Limits what an idle connection keeps, even with a very long host. Usually it is 600. */
const REMEMBERED_LENGTH_MAX = 2_048
