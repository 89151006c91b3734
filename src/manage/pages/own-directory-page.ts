import { directoryHeaders, directoryText } from '../../identity/keys/own-directory.ts'
import type { RequestContext } from '../http/router.ts'
import { beginDocument } from '../http/front/public-document.ts'
import type { OwnSignature } from '../auth/own-signature.ts'
import { Refusal } from '../http/refusal.ts'

/**
 * The public keys that Gatehouse signs with, for any client. They are signed for the host that Gatehouse is
 * known by: signed for another host, an attacker could present our keys as their own.
 */
export function sayDirectory(ctx: RequestContext, { agent, keys }: OwnSignature, nowMs: number): void {
  beginDocument(ctx)
  if (keys === null)
    throw new Refusal(
      'not_found',
      'this installation does not sign requests and has no keys (setting: signing)',
    )
  ctx.body = Buffer.from(directoryText(keys))
  ctx.set(directoryHeaders(keys, new URL(agent).host, Math.floor(nowMs / 1000)))
  ctx.set('Access-Control-Allow-Origin', '*')
  ctx.state.freshSeconds = FRESH_S
}

const FRESH_S = 3_600
