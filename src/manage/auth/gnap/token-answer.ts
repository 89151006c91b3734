import type { GnapTokenRecord, TokenHashes } from '../../../store/people/gnap-tokens.ts'
import { hashOfKey, newSecret } from '../api-keys.ts'
import { ACCESS_PREFIX, MANAGE_PREFIX } from './gnap-tokens.ts'
import { ACCESS_TYPE } from './grant-request.ts'

/** The secrets of a token. Only the response contains them; the database stores hashes. */
interface TokenSecrets {
  readonly value: string
  readonly manage: string
}

export function newTokenSecrets(): TokenSecrets {
  return { value: newSecret(ACCESS_PREFIX), manage: newSecret(MANAGE_PREFIX) }
}

export function hashesOf({ value, manage }: TokenSecrets): TokenHashes {
  return { hash: hashOfKey(value), manageHash: hashOfKey(manage) }
}

/** The token in the form of RFC 9635 §3.2.1. */
export function tokenAnswer(
  { id, label, scopes, isBearer, expiresAtMs }: GnapTokenRecord,
  { value, manage }: TokenSecrets,
  publicUrl: string,
  nowMs: number,
): Readonly<Record<string, unknown>> {
  return {
    value,
    ...(label === null ? {} : { label }),
    ...(isBearer ? { flags: ['bearer'] } : {}),
    access: [{ type: ACCESS_TYPE, actions: scopes }],
    expires_in: Math.round((expiresAtMs - nowMs) / 1000),
    manage: { uri: `${publicUrl}/gnap/token/${id}`, access_token: { value: manage } },
  }
}
