import type { MinuteThrottle } from '../minute-throttle.ts'
import type { GnapTokens } from './gnap-tokens.ts'

export interface GnapSettings {
  readonly tokenTtlS: number
  /** Whether a token may be asked for that nobody has to sign for. */
  readonly allowsBearer: boolean
}

/** What of GNAP lasts from one request to the next. */
export interface Gnap {
  readonly settings: GnapSettings
  readonly tokens: GnapTokens
  /** Counts, by address, those who ask for somebody's approval. */
  readonly asking: MinuteThrottle
}

/** Of this address and what stands behind it. */
export function grantEndpoint(publicUrl: string): string {
  return `${publicUrl}${GRANT_PATH}`
}

export const GRANT_PATH = '/gnap/grant'
/** Nobody has so many clients. */
export const ASKING_PER_MINUTE = 30
