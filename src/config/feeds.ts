import { boolean, duration, name, optional, path, size } from './kinds.ts'
import { feedKey, httpsUrl } from './network-kinds.ts'
import { type ValueOf, list, secret, section, setting } from './items.ts'
import type { Secret } from '../shared/secret.ts'

export const FEED = section('', {
  name: setting(name, undefined, 'The name that its publisher gave it. It is part of the signed content.'),
  url: setting(
    httpsUrl,
    undefined,
    'The URL of the feed, without user and query. Redirects are not followed.',
  ),
  public_keys: list(
    feedKey,
    'Keys of the publisher; one of them must have signed the feed. List two during a key rotation.',
  ),
  refresh: setting(
    duration('1m', '7d'),
    '1h',
    'How often it is fetched, with some jitter. After a failure it is fetched sooner.',
  ),
  timeout: setting(duration('100ms', '10m'), '30s', 'Time limit for a complete fetch.'),
  bytes_max: setting(size('1KiB', '64MiB'), '4MiB', 'Maximum size of the feed. A larger one is rejected.'),
  token: secret('Token sent to its server (`Authorization: Bearer`).', 0),
  ca_file: setting(
    optional(path),
    null,
    'PEM file with CAs that are trusted instead of those of the system.',
  ),
  allow_private: setting(
    boolean,
    false,
    'Whether its server may have an address that is not on the public internet.',
    (isAllowed) =>
      isAllowed
        ? 'the owner of the DNS name of its host can make this server send requests to internal hosts'
        : null,
  ),
})

export interface FeedConfig {
  readonly name: string
  readonly url: string
  readonly publicKeys: readonly string[]
  readonly refreshMs: number
  readonly timeoutMs: number
  readonly bytesMax: number
  readonly token: Secret<string> | null
  readonly caFile: string | null
  readonly allowPrivate: boolean
}

export function feedConfig(feed: ValueOf<typeof FEED>): FeedConfig {
  return {
    name: feed.name,
    url: feed.url,
    publicKeys: feed.public_keys,
    refreshMs: feed.refresh,
    timeoutMs: feed.timeout,
    bytesMax: feed.bytes_max,
    token: feed.token,
    caFile: feed.ca_file,
    allowPrivate: feed.allow_private,
  }
}
