import { choice, integer, optional, path, size, text } from './kinds.ts'
import { busName, busUrl } from './network-kinds.ts'
import { type ValueOf, list, secret, section, setting } from './items.ts'
import type { Secret } from '../shared/secret.ts'

/** What is between managers and proxies that run apart. */
export const BUS = section('NATS with JetStream, which connects `gatehouse manage` and its proxies.', {
  url: list(
    busUrl,
    'URLs of the NATS servers; any server that responds is used. TLS is required with `tls://`, or if one of the TLS files below is set. Empty: the proxy runs without managers.',
  ),
  name: setting(
    busName,
    'gatehouse',
    'Prefix of subjects and streams, so that several installations can share a NATS server. All processes of one installation need the same prefix.',
  ),
  credentials_file: setting(
    optional(path),
    null,
    'A `.creds` file with a JWT and its key. This file, the secret files below and the TLS files are reloaded when they change.',
  ),
  user: setting(optional(text), null, 'User name, instead of a credentials file.'),
  user_file: setting(
    optional(path),
    null,
    'A file with the user name, instead of `user`. Reloaded when it changes.',
  ),
  password: secret('Password of that user.', 0),
  token: secret('Token, instead of a user or a credentials file.', 0),
  ca_file: setting(
    optional(path),
    null,
    'PEM file with CAs that are trusted instead of those of the system.',
  ),
  certificate_file: setting(optional(path), null, 'PEM file with the client certificate.'),
  key_file: setting(optional(path), null, 'PEM file with the private key of the client certificate.'),
  first_snapshot: setting(
    choice('wait', 'serve'),
    'wait',
    'What a proxy does if it has never received a Snapshot of its fleet: `data.dir` has no copy, `bootstrap_file` is not set, and NATS is unreachable or has no Snapshot. `wait`: it opens its client ports when it receives one, and is not ready until then. `serve`: it serves with its own `policy.file` and the built-in signatures.',
    (choice) =>
      choice === 'serve'
        ? 'a new proxy that cannot reach NATS will serve requests that the policy of the fleet blocks'
        : null,
  ),
  bootstrap_file: setting(
    optional(path),
    null,
    'A Snapshot for a proxy that cannot reach NATS at its first start, written by `gatehouse snapshot export`. It is used until NATS delivers a newer one. If the copy in `data.dir` is newer, the file is ignored. Read at startup.',
  ),
  sightings_bytes: setting(
    size('1MiB', '1000GiB'),
    '1GiB',
    'How much traffic data NATS may buffer until it is stored; when the buffer is full, proxies buffer it. Only used when managers create the stream.',
  ),
  replicas: setting(
    integer(1, 5),
    1,
    'How many servers of a NATS cluster store each message. Only used when managers create the streams.',
  ),
})

/** NATS, between the planes. */
export interface BusConfig {
  /** Empty: no connection to other planes. */
  readonly urls: readonly string[]
  readonly name: string
  readonly credentialsFile: string | null
  readonly user: string | null
  readonly userFile: string | null
  readonly password: Secret<string> | null
  readonly token: Secret<string> | null
  readonly caFile: string | null
  readonly certificateFile: string | null
  readonly keyFile: string | null
  /** What a proxy does before it has received its first Snapshot of the fleet. */
  readonly firstSnapshot: 'wait' | 'serve'
  /** `null`: not configured. */
  readonly bootstrapFile: string | null
  readonly sightingsBytesMax: number
  readonly replicas: number
}

export function busConfig(bus: ValueOf<typeof BUS>): BusConfig {
  return {
    urls: bus.url,
    name: bus.name,
    credentialsFile: bus.credentials_file,
    user: bus.user,
    userFile: bus.user_file,
    password: bus.password,
    token: bus.token,
    caFile: bus.ca_file,
    certificateFile: bus.certificate_file,
    keyFile: bus.key_file,
    firstSnapshot: bus.first_snapshot,
    bootstrapFile: bus.bootstrap_file,
    sightingsBytesMax: bus.sightings_bytes,
    replicas: bus.replicas,
  }
}
