import { busName, busUrl, choice, integer, optional, path, size, text } from './kinds.ts'
import { list, secret, section, setting } from './items.ts'

/** Settings of the bus between managers and remote proxies. */
export const BUS = section('NATS with JetStream, between `gatehouse manage` and its proxies.', {
  url: list(
    busUrl,
    'Where it is; of several servers any that answers is used. With `tls://`, or one of the files below, only with TLS. None: the proxy is on its own.',
  ),
  name: setting(
    busName,
    'gatehouse',
    'What subjects and streams begin with, so that installations may share a NATS. The same for all of one.',
  ),
  credentials_file: setting(
    optional(path),
    null,
    'A `.creds` file with a JWT and its key. It, the files of the secrets below and those of TLS are read again when they change.',
  ),
  user: setting(optional(text), null, 'Instead of such a file.'),
  user_file: setting(
    optional(path),
    null,
    'A file with that user, instead of `user`; read again when it changes.',
  ),
  password: secret('Of that user.', 0),
  token: secret('Instead of both.', 0),
  ca_file: setting(optional(path), null, "Trusted instead of the system's; PEM."),
  certificate_file: setting(optional(path), null, 'A certificate that says who this is; PEM.'),
  key_file: setting(optional(path), null, 'Its private key.'),
  first_snapshot: setting(
    choice('wait', 'serve'),
    'wait',
    'What a proxy does that has never had a Snapshot of its fleet: there is no copy in `data.dir` and no `bootstrap_file`, and NATS is unreachable or has none. `wait`: it opens its ports for clients when it has one, and is not ready until then. `serve`: it serves with its own `policy.file` and the signatures that come with Gatehouse.',
    (choice) =>
      choice === 'serve'
        ? 'a new proxy that cannot reach NATS serves requests that the policy of the fleet blocks'
        : null,
  ),
  bootstrap_file: setting(
    optional(path),
    null,
    'A Snapshot for a proxy that cannot reach NATS at its first start, written by `gatehouse snapshot export`. It is in use until NATS brings a newer one. If the copy in `data.dir` is newer, the file is ignored. Read at the start.',
  ),
  sightings_bytes: setting(
    size('1MiB', '1000GiB'),
    '1GiB',
    'How much of what was seen may wait there until it is stored; then proxies have to keep it. Counts where managers make the stream.',
  ),
  replicas: setting(
    integer(1, 5),
    1,
    'How many servers of a NATS cluster have each message. Counts where managers make the streams.',
  ),
})
