import type { MinuteThrottle } from '../minute-throttle.ts'
import type { GnapTokens } from './gnap-tokens.ts'

export interface GnapSettings {
  readonly tokenTtlS: number
  /** Whether clients may request bearer tokens, which need no signature. */
  readonly allowsBearer: boolean
}

/** The GNAP state that is shared by all requests. */
export interface Gnap {
  readonly settings: GnapSettings
  readonly tokens: GnapTokens
  /** Counts requests for an approval by address. */
  readonly asking: MinuteThrottle
}

/** The public URL of the grant endpoint. */
export function grantEndpoint(publicUrl: string): string {
  return `${publicUrl}${GRANT_PATH}`
}

export const GRANT_PATH = '/gnap/grant'
/** More than a real address needs. */
export const ASKING_PER_MINUTE = 30
