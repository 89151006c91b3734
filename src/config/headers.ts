import { choice, clientHeaderName } from './kinds.ts'
import { list, noRisk, setting } from './items.ts'

/** Settings of `proxy` for the client headers that reach the app. */
export const HEADERS = {
  odd_header_names: setting(
    choice('drop', 'pass', 'refuse'),
    'drop',
    'What to do with headers and trailers whose names contain other characters than letters, digits and hyphens, like `X_Plan` or `x.plan`: many servers read them as `X-Plan`. `drop` removes them before forwarding. `refuse` answers 400, and removes such trailers. `pass` forwards them, except alternative spellings of headers that this proxy sets or removes, and of common ones like `Content_Length`. Metric: `gatehouse_odd_header_names_total`.',
    (names) => (names === 'pass' ? 'servers that normalize names can read them as other headers' : null),
  ),
  untrusted_headers: list(
    clientHeaderName,
    'Headers that are removed in every spelling, because apps commonly trust them. If a trusted proxy sends one and `trusted_headers` lists it, it is forwarded. All other headers that start with `X-Forwarded-` are treated the same.',
    noRisk,
    [
      'true-client-ip',
      'x-client-ip',
      'x-cluster-client-ip',
      'cf-connecting-ip',
      'fastly-client-ip',
      'x-original-url',
      'x-rewrite-url',
      'proxy',
    ],
  ),
  trusted_headers: list(
    clientHeaderName,
    'Headers that are trusted and forwarded unchanged if they come from `trusted_proxies`. Possible are headers that this proxy otherwise sets or removes: `x-forwarded-*`, `forwarded`, `x-real-ip` and `untrusted_headers`. List only headers that your proxy in front sets or removes itself. Even if `forwarded` is not listed, it is read for the address of the client when there is no X-Forwarded-For.',
    noRisk,
    ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-port'],
  ),
}
