/**
 * The client timeouts, by the names of their settings in `proxy.limits`. In every state in which a client can
 * be silent, one of them or an upstream timeout is running: see "Deadlines" in config/guide/proxy.md.
 */
export const CLIENT_TIMEOUTS = [
  'hello_timeout',
  'handshake_timeout',
  'header_timeout',
  'body_idle_timeout',
  'answer_unread_timeout',
  'keep_alive_timeout',
  'upgrade_idle_timeout',
] as const

export type ClientTimeout = (typeof CLIENT_TIMEOUTS)[number]
