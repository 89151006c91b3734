import type { Secret } from '../shared/secret.ts'
import { choice } from './kinds.ts'
import { secrets, section, setting, type ValueOf } from './items.ts'

export const PRIVACY = section(
  'What is stored, logged and sent of the clients of your apps; config/guide/privacy.md. The proxy applies it before anything leaves its memory: decisions, rate limits, proofs and campaigns use what the client sent. Use the same values in all proxies of a fleet.',
  {
    addresses: setting(
      choice('full', 'network', 'keyed_hash'),
      'full',
      'The form of client addresses. `network`: the IPv4 /24 or IPv6 /48. `keyed_hash`: a hash that is equal for equal addresses; with the key, requests can still be found by address.',
    ),
    user_agents: setting(
      choice('full', 'product', 'none'),
      'full',
      'The form of User-Agent headers. `product`: only the programs and their main versions, like `Chrome/126` or `GPTBot/1`, without system, device, language and contact.',
    ),
    paths: setting(
      choice('full', 'pattern', 'none'),
      'full',
      'The form of paths. `pattern`: with `[id]` for numbers and ids, and `[redacted]` for e-mail addresses and long random texts. Whatever the value, queries are not stored, and keys, tokens and passwords in paths are replaced by `[redacted]`.',
    ),
    keys: secrets(
      'Keys of the hashes, needed if addresses or paths are not stored in full. The first key hashes. Managers use all of them to find and erase addresses, so keep an earlier key for as long as requests are kept. A file has one key per line. All proxies and managers of a fleet need the same keys.',
      16,
    ),
  },
)

export interface PrivacyConfig {
  readonly addresses: 'full' | 'network' | 'keyed_hash'
  readonly userAgents: 'full' | 'product' | 'none'
  readonly paths: 'full' | 'pattern' | 'none'
  /** The first one hashes. */
  readonly keys: readonly Secret<string>[]
}

export function privacyConfig({
  addresses,
  user_agents,
  paths,
  keys,
}: ValueOf<typeof PRIVACY>): PrivacyConfig {
  return { addresses, userAgents: user_agents, paths, keys }
}

/** Whether what is stored has hashes of clients. */
export function needsKey(of: {
  readonly addresses: string | undefined
  readonly paths: string | undefined
}): boolean {
  return [of.addresses, of.paths].some((form) => form !== undefined && form !== 'full')
}
