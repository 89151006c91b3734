/**
 * The deadlines of clients, by the names of their settings in `proxy.limits`. In each state in which a client can be silent one
 * of them runs, or one of the upstream's: see "Deadlines" in README.md.
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
