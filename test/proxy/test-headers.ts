import { HeaderRules, type HeaderSettings } from '../../src/proxy/connection/header-rules.ts'

/** As they are by default. */
export const HEADER_SETTINGS: Omit<HeaderSettings, 'ja4Header'> = {
  oddNames: 'drop',
  untrusted: [
    ...['true-client-ip', 'x-client-ip', 'x-cluster-client-ip', 'cf-connecting-ip', 'fastly-client-ip'],
    ...['x-original-url', 'x-rewrite-url', 'proxy'],
  ],
  trusted: ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-port'],
}

export function headerRules(changes: Partial<HeaderSettings> = {}): HeaderRules {
  return new HeaderRules({ ...HEADER_SETTINGS, ja4Header: 'x-ja4-fingerprint', ...changes })
}
