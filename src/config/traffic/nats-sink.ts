import { checkNatsLogin, NATS_LOGIN, type NatsLoginConfig, natsLoginConfig, warnNatsLogin } from '../fleet.ts'
import type { Say } from '../inject.ts'
import { list, type Maybe, section, setting, type ValueOf } from '../items.ts'
import { boolean } from '../kinds.ts'
import { natsSubject, sinkNatsUrl } from '../network-kinds.ts'

/** Requests as messages. */
export const NATS = section(
  'Individual requests as messages of NATS, each as a JSON object; config/guide/exports.md. If several processes share a database, one at a time sends.',
  {
    url: list(
      sinkNatsUrl,
      'URLs of the NATS servers; any server that responds is used. TLS is required with `tls://`, or if one of the TLS files below is set. Empty: none.',
    ),
    subject: setting(
      natsSubject,
      'gatehouse.requests.{app}',
      'The subject of the messages. `{app}` stands for the app of the request.',
    ),
    jetstream: setting(
      boolean,
      true,
      'Whether a stream of JetStream stores the subject. `true`: a request is sent until a stream has acknowledged it; Gatehouse does not create the stream. `false`: a request is sent until a server has received it, and only consumers that are connected then get it.',
    ),
    ...NATS_LOGIN,
  },
)

type NatsSink = ValueOf<typeof NATS>

/** Of the login. */
export type CheckedNatsSink = Maybe<Pick<NatsSink, keyof typeof NATS_LOGIN>>

export interface NatsSinkConfig extends NatsLoginConfig {
  readonly urls: readonly string[]
  readonly subject: string
  readonly isStream: boolean
}

export function natsSinkConfig(nats: NatsSink): NatsSinkConfig | null {
  const { url: urls, subject, jetstream: isStream } = nats
  return urls.length === 0 ? null : { urls, subject, isStream, ...natsLoginConfig(nats) }
}

export function checkNatsSink(nats: CheckedNatsSink, refuse: Say): void {
  checkNatsLogin('sinks.nats', nats, refuse)
}

export function warnNatsSink(nats: NatsSink, warn: Say): void {
  warnNatsLogin('sinks.nats', nats, warn)
  const { url, password, token } = nats
  const hasSecret = password !== null || token !== null
  if (url.length === 0 && hasSecret)
    warn(`/sinks/nats/${token === null ? 'password' : 'token'}`, 'has no effect without url')
  const isPlain = url.some((each) => each.startsWith('nats:')) && nats.ca_file === null
  if (isPlain && nats.certificate_file === null)
    warn(
      '/sinks/nats/url',
      'is without TLS, so an attacker on the network can read the addresses of clients; use tls://',
    )
}
