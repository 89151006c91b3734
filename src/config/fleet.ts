import { choice, integer, optional, path, size, text } from './kinds.ts'
import { busName, busUrl } from './network-kinds.ts'
import type { Say } from './inject.ts'
import { type Maybe, type Section, type ValueOf, list, secret, section, setting } from './items.ts'
import type { Secret } from '../shared/secret.ts'

/** How to log in to NATS. */
export const NATS_LOGIN = {
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
}

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
  ...NATS_LOGIN,
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

/** The login for NATS, as it is given. */
export interface NatsLoginConfig {
  readonly credentialsFile: string | null
  readonly user: string | null
  readonly userFile: string | null
  readonly password: Secret<string> | null
  readonly token: Secret<string> | null
  readonly caFile: string | null
  readonly certificateFile: string | null
  readonly keyFile: string | null
}

/** NATS, between the planes. */
export interface BusConfig extends NatsLoginConfig {
  /** Empty: no connection to other planes. */
  readonly urls: readonly string[]
  readonly name: string
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
    ...natsLoginConfig(bus),
    firstSnapshot: bus.first_snapshot,
    bootstrapFile: bus.bootstrap_file,
    sightingsBytesMax: bus.sightings_bytes,
    replicas: bus.replicas,
  }
}

type NatsLogin = ValueOf<Section<typeof NATS_LOGIN>>

export function natsLoginConfig(login: NatsLogin): NatsLoginConfig {
  return {
    credentialsFile: login.credentials_file,
    user: login.user,
    userFile: login.user_file,
    password: login.password,
    token: login.token,
    caFile: login.ca_file,
    certificateFile: login.certificate_file,
    keyFile: login.key_file,
  }
}

/** `name`: of the section. Settings that are invalid by themselves are undefined here. */
export function checkNatsLogin(name: string, login: Maybe<NatsLogin>, refuse: Say): void {
  const at = `/${name.replaceAll('.', '/')}`
  const { user, user_file, credentials_file, token, key_file, certificate_file } = login
  if (user && user_file) refuse(`${at}/user`, `and ${name}.user_file are both set; remove one of them`)
  const ways = [credentials_file, user ?? user_file, token].filter((way) => way !== null && way !== undefined)
  if (ways.length > 1) refuse(at, 'must have only one of credentials_file, user and token')
  if (key_file === null && certificate_file)
    refuse(`${at}/key_file`, `is missing; set the private key of ${name}.certificate_file`)
  if (certificate_file === null && key_file)
    refuse(`${at}/certificate_file`, `is missing; set the certificate of ${name}.key_file`)
}

export function warnNatsLogin(name: string, { password, user, user_file }: NatsLogin, warn: Say): void {
  if (password !== null && user === null && user_file === null)
    warn(`/${name.replaceAll('.', '/')}/password`, `has no effect without ${name}.user`)
}
