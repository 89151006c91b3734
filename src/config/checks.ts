import { APP_LIST_MAX } from '../apps/app-scope.ts'
import { checkApps } from './apps.ts'
import { checkNatsLogin, warnNatsLogin } from './fleet.ts'
import { checkInject, type Say, warnInject } from './inject.ts'
import { type HostPort, isEverywhere } from './network-kinds.ts'
import { checkPayments } from './payments.ts'
import type { ValueOf } from './items.ts'
import { needsKey } from './privacy.ts'
import { checkSinks, warnSinks } from './traffic/sinks.ts'
import { checkSample } from './traffic/sample.ts'
import type { SETTINGS } from './schema.ts'
import type { Secret } from '../shared/secret.ts'

export type Settings = ValueOf<typeof SETTINGS>

/** `store`: a command that only maintains stored data. */
export type ConfigRole = 'up' | 'proxy' | 'manage' | 'inject' | 'store'

/** Checks the settings that a role requires, and those that it cannot use. */
export function checkRole(
  { proxy, bus, store, inject, payments, apps }: Settings,
  role: ConfigRole | undefined,
  refuse: Say,
): void {
  if (role === 'inject') {
    if (inject.sidecar.image === null)
      refuse('/inject/sidecar/image', 'is missing; set the image of the sidecar')
    return
  }
  const isOnBus = bus.url.length > 0
  const takesPayments =
    payments.x402.facilitator !== null ||
    payments.crawler_price.accounts.length > 0 ||
    payments.license.introspection !== null
  if (role === 'proxy' && !isOnBus && takesPayments)
    refuse(
      '/payments',
      'needs the management plane, which keeps the ledger; use gatehouse up, or connect to managers with bus.url',
    )
  const forwardsNothing = role === 'manage' || role === 'store'
  const mayForwardNothing = role === undefined && (isOnBus || inject.sidecar.image !== null)
  if (proxy.upstreams.length === 0 && !forwardsNothing && !mayForwardNothing) refuse(...NO_UPSTREAM)
  if (role === 'up' && isOnBus)
    refuse(
      '/bus/url',
      'is only for `gatehouse manage` and `gatehouse proxy`; `up` runs both planes in one process',
    )
  if (role === 'proxy' && isOnBus && apps.length > 0)
    refuse(
      '/apps',
      'belongs in the settings of `gatehouse manage`, which sends the apps to its proxies; here, set proxy.app or remove it',
    )
  if (role !== 'manage') return
  if (!isOnBus)
    refuse('/bus/url', 'is missing; set the NATS server that connects the proxies, nats://HOST:PORT')
  if (!store.url?.startsWith('postgres'))
    refuse('/store/url', 'must be a postgres:// URL, because managers share their database')
  else if (store.encryption_keys.length === 0 && store.encryption_key === null)
    refuse('/store/encryption_keys', 'is missing; managers that share a database need the same keys')
}

/** Checks settings against each other. Settings that are invalid by themselves are undefined here. */
export function checkTogether(
  {
    proxy,
    manage,
    auth,
    fetch,
    identity,
    signing,
    feeds,
    apps,
    store,
    bus,
    inject,
    privacy,
    payments,
    sightings,
    sinks,
    tracing,
  }: Partly<Settings>,
  refuse: Say,
): void {
  const { upstreams, limits } = proxy
  checkInject(inject, refuse)
  checkPayments(payments, refuse)
  checkSample(sightings.sample, refuse)
  checkSinks(sinks, refuse)
  checkApps(apps, bus.url.length > 0 ? null : upstreams.map(({ name }) => name), refuse)
  if (store.encryption_key && store.encryption_keys.length > 0)
    refuse(
      '/store/encryption_key',
      'is the short form of store.encryption_keys, which is also set; remove one of them',
    )
  if (needsKey(privacy) && privacy.keys.length === 0)
    refuse(
      '/privacy/keys',
      'is missing; with addresses or paths that are not stored in full, clients are known by keyed hashes: set a long random secret',
    )
  if (tracing.token && !BEARER_TOKEN.test(tracing.token.reveal())) refuse('/tracing/token', NO_TOKEN)
  for (const [index, upstream] of upstreams.entries()) {
    const at = `/proxy/upstreams/${index}`
    if (upstream.urls.length === 0) refuse(`${at}/urls`, 'is missing')
    const first = upstreams.findIndex(({ name }) => name === upstream.name)
    if (upstream.name !== undefined && first < index)
      refuse(`${at}/name`, `"${upstream.name}" is already used; each upstream needs a unique name`)
    if (isMore(upstream.connections_idle_max, upstream.connections_max))
      refuse(`${at}/connections_idle_max`, 'is greater than connections_max')
    const { path, interval, timeout } = upstream.health
    if (path !== null && isMore(timeout, interval))
      refuse(`${at}/health/timeout`, 'is longer than health.interval')
  }
  if (proxy.proxy_protocol === 'required' && proxy.trusted_proxies.length === 0)
    refuse('/proxy/proxy_protocol', 'is required, but trusted_proxies is empty; list the proxies there')
  if (manage.proxy_protocol === 'required' && manage.trusted_proxies.length === 0)
    refuse(
      '/manage/proxy_protocol',
      'is required, but manage.trusted_proxies is empty; list the proxies there',
    )
  if (isMore(limits.request_line_bytes, limits.header_bytes))
    refuse('/proxy/limits/request_line_bytes', 'is greater than header_bytes, which includes it')
  if (manage.admin_key && UNSENDABLE.test(manage.admin_key.reveal()))
    refuse(
      '/manage/admin_key',
      'starts or ends with a space, or contains a control character; such a key cannot be sent in a header',
    )
  if (auth.registration === 'token' && auth.registration_token === null)
    refuse('/auth/registration', 'is "token", so auth.registration_token must be set')
  if (auth.registration_token && !BEARER_TOKEN.test(auth.registration_token.reveal()))
    refuse('/auth/registration_token', 'contains a character that is not allowed in a token')
  if (signing.upstream === true && proxy.signature_key)
    refuse(
      '/signing/upstream',
      'cannot be combined with proxy.signature_key, because both sign the same header; remove one of them',
    )
  const { issuer, client_id, assertions } = auth.openid
  if (assertions.accept === true && issuer === null)
    refuse(
      '/auth/openid/assertions/accept',
      'needs the provider that makes the assertions: set auth.openid.issuer',
    )
  if (issuer && client_id === null)
    refuse('/auth/openid/client_id', 'is missing; set the client ID that the issuer assigned')
  for (const [index, { apps }] of auth.openid.roles.entries())
    if (apps.length === 0)
      refuse(`/auth/openid/roles/${index}/apps`, 'is missing; name apps, or write ["*"] for all apps')
    else if (apps.length > APP_LIST_MAX)
      refuse(`/auth/openid/roles/${index}/apps`, `has ${apps.length} apps; at most ${APP_LIST_MAX}`)
  if (issuer?.startsWith('http:') && fetch.allow_private_addresses === false)
    refuse(
      '/auth/openid/issuer',
      'must be an https:// URL; http:// is allowed only for tests, with fetch.allow_private_addresses',
    )
  if (identity.registries.length > REGISTRIES_MAX)
    refuse('/identity/registries', `has ${identity.registries.length} registries; at most ${REGISTRIES_MAX}`)
  for (const list of ['agents', 'registries'] as const)
    for (const [index, url] of identity[list].entries())
      if (url?.startsWith('http:') && fetch.allow_private_addresses === false)
        refuse(
          `/identity/${list}/${index}`,
          'must be an https:// URL; http:// is allowed only for tests, with fetch.allow_private_addresses',
        )
  if (isSame(proxy.plain_listen, proxy.listen))
    refuse('/proxy/plain_listen', 'is the same address as proxy.listen')
  if (isSame(manage.listen, proxy.listen)) refuse('/manage/listen', 'is the same address as proxy.listen')
  else if (isSame(manage.listen, proxy.plain_listen))
    refuse('/manage/listen', 'is the same address as proxy.plain_listen')
  checkNatsLogin('bus', bus, refuse)
  for (const [index, { name, public_keys, token }] of feeds.entries()) {
    const at = `/feeds/${index}`
    if (public_keys.length === 0) refuse(`${at}/public_keys`, 'is missing')
    if (name !== undefined && feeds.findIndex((feed) => feed.name === name) < index)
      refuse(`${at}/name`, `"${name}" is already used; each feed needs a unique name`)
    if (token && !BEARER_TOKEN.test(token.reveal())) refuse(`${at}/token`, NO_TOKEN)
  }
}

/** Warns about settings without effect, or with less effect than expected. */
export function warnTogether(
  {
    proxy,
    manage,
    store,
    traffic,
    sightings,
    auth,
    fetch,
    identity,
    signing,
    sinks,
    bus,
    inject,
    privacy,
    tracing,
  }: Settings,
  warn: Say,
): void {
  const { tls } = proxy
  warnInject(inject, warn)
  if (tracing.token !== null && tracing.endpoint === null)
    warn('/tracing/token', 'has no effect without tracing.endpoint')
  if (tracing.token !== null && tracing.endpoint?.startsWith('http:'))
    warn('/tracing/token', 'is sent over plain http://, so an attacker on the network can read it')
  warnNatsLogin('bus', bus, warn)
  if (proxy.proxy_protocol === 'optional' && proxy.trusted_proxies.length === 0)
    warn('/proxy/proxy_protocol', 'has no effect without trusted_proxies')
  if (manage.proxy_protocol === 'optional' && manage.trusted_proxies.length === 0)
    warn('/manage/proxy_protocol', 'has no effect without manage.trusted_proxies')
  if (tls.client_ca_file !== null && tls.client_certificates === 'off')
    warn('/proxy/tls/client_ca_file', 'has no effect without client_certificates: request')
  if (tls.sni_mismatch === 'reject' && tls.require_sni === false)
    warn(
      '/proxy/tls/require_sni',
      'is false with sni_mismatch: reject; a client that sends no SNI can request any host',
    )
  if (proxy.hosts.length === 0 && proxy.unknown_host === 'pass')
    warn('/proxy/unknown_host', 'has no effect without hosts')
  if (
    store.url?.startsWith('postgres') &&
    store.encryption_keys.length === 0 &&
    store.encryption_key === null
  )
    warn(
      '/store/url',
      'is shared, but store.encryption_keys is not set, so each process can read only the secrets that it stored',
    )
  if (traffic.password !== null && traffic.url === null)
    warn('/traffic/password', 'has no effect without url')
  if (sightings.bytes_max !== null && store.url?.startsWith('postgres'))
    warn('/sightings/bytes_max', 'has no effect with PostgreSQL')
  if (sightings.synchronous_commit === 'off' && !store.url?.startsWith('postgres'))
    warn('/sightings/synchronous_commit', 'has no effect without store.url: postgres://…')
  if (manage.tls.cert_file === null && manage.tls.key_file !== null)
    warn('/manage/tls/key_file', 'has no effect without cert_file')
  if (auth.openid.client_id !== null && auth.openid.issuer === null)
    warn('/auth/openid/client_id', 'has no effect without issuer')
  if (auth.openid.roles.length > 0 && auth.openid.issuer === null)
    warn('/auth/openid/roles', 'has no effect without issuer')
  warnSinks(sinks, warn)
  if (identity.resolvers.length > 0 && !identity.reverse_dns)
    warn('/identity/resolvers', 'has no effect without reverse_dns')
  if (identity.agents.length > 0 && identity.signatures === 'off')
    warn('/identity/agents', 'has no effect with signatures: off')
  if (identity.registries.length > 0 && identity.signatures === 'off')
    warn('/identity/registries', 'has no effect with signatures: off')
  if (identity.signatures === 'discover' && fetch.allow_private_addresses)
    warn(
      '/fetch/allow_private_addresses',
      'is true with identity.signatures: discover, so any signed request can make this server fetch keys from internal hosts; use identity.signatures: listed to fetch only from known agents',
    )
  if (signing.key_file !== null && !signing.webhooks && !signing.upstream)
    warn('/signing/key_file', 'has no effect without signing.webhooks or signing.upstream')
  if (proxy.access_log === 'off' && proxy.access_log_file !== null)
    warn('/proxy/access_log_file', 'has no effect without access_log: common or json')
  if (proxy.websocket_grace > proxy.drain_timeout)
    warn('/proxy/websocket_grace', 'is longer than drain_timeout, which cuts it short')
  for (const [index, upstream] of proxy.upstreams.entries()) {
    const isPlain = upstream.urls.every((url) => !/^(?:https|h2):/i.test(url))
    const isSet = !upstream.tls.verify || upstream.tls.ca_file !== null || upstream.tls.server_name !== null
    if (isPlain && isSet)
      warn(`/proxy/upstreams/${index}/tls`, 'has no effect without an https:// or h2:// URL')
  }
  for (const [pointer, key] of [
    ['/proxy/signature_key', proxy.signature_key],
    ['/manage/admin_key', manage.admin_key],
    ['/store/encryption_key', store.encryption_key],
    ...privacy.keys.map((key, index) => [`/privacy/keys/${index}`, key] as const),
    ...store.encryption_keys.map((key, index) => [`/store/encryption_keys/${index}`, key] as const),
  ] as const) {
    if (key !== null && key.reveal().length < SECRET_LENGTH_GOOD)
      warn(
        pointer,
        `is shorter than ${SECRET_LENGTH_GOOD} characters; use a longer, randomly generated secret`,
      )
  }
}

/** Settings during validation: an invalid value is undefined. */
type Partly<Value> = Value extends HostPort | Secret<string> | string | number | boolean | null
  ? Value | undefined
  : { readonly [Name in keyof Value]: Partly<Value[Name]> }

function isMore(one: number | undefined, other: number | undefined): boolean {
  return one !== undefined && other !== undefined && one > other
}

/** Port 0 picks a new port each time, so two of them never collide. */
function isSame(one: HostPort | null | undefined, other: HostPort | null | undefined): boolean {
  if (!one || !other || one.port !== other.port || one.port === 0) return false
  return one.host === other.host || isEverywhere(one) || isEverywhere(other)
}

const NO_TOKEN = 'contains a character that is not allowed in a token'
const NO_UPSTREAM = [
  '/proxy/upstream',
  'is missing; set the URL of your app, like --upstream http://127.0.0.1:3000',
] as const
/** Their cards fill a cache. */
const REGISTRIES_MAX = 8
const SECRET_LENGTH_GOOD = 32
/** RFC 6750 §2.1. */
const BEARER_TOKEN = /^[\w.~+/-]+=*$/
/** RFC 9110 §5.5: blanks around a value are not part of it. */
const UNSENDABLE = /^\s|\s$|\p{Cc}/u
