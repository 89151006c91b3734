import { choice, clientHeaderName } from './kinds.ts'
import { list, noRisk, setting } from './items.ts'

/** Settings of `proxy` for the client headers that reach the app. */
export const HEADERS = {
  odd_header_names: setting(
    choice('drop', 'pass', 'refuse'),
    'drop',
    'What happens to headers and trailers whose names have a character other than letters, digits and hyphens, as `X_Plan` or `x.plan`: many servers read them as `X-Plan`. `drop` removes them before forwarding; `refuse` answers 400, and removes such trailers; `pass` forwards them, but for other spellings of headers that this proxy sets or removes and of common ones, like `Content_Length`. Metric: `gatehouse_odd_header_names_total`.',
    (names) => (names === 'pass' ? 'servers that fold names may read them as other headers' : null),
  ),
  untrusted_headers: list(
    clientHeaderName,
    'Headers that are removed in every spelling, because apps commonly trust them. One that a trusted proxy sends is passed on if `trusted_headers` names it. Other headers that begin with `X-Forwarded-` are treated the same.',
    noRisk,
    [
      ...['true-client-ip', 'x-client-ip', 'x-cluster-client-ip', 'cf-connecting-ip', 'fastly-client-ip'],
      ...['x-original-url', 'x-rewrite-url', 'proxy'],
    ],
  ),
  trusted_headers: list(
    clientHeaderName,
    'Which headers of `trusted_proxies` are believed and passed on as they came, of those that this proxy sets or removes otherwise: `x-forwarded-*`, `forwarded`, `x-real-ip` and `untrusted_headers`. Name only what your proxy in front writes or removes itself. Without `forwarded`, that header is still read for the address of the client where there is no X-Forwarded-For.',
    noRisk,
    ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-port'],
  ),
}
