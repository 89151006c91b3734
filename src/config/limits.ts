import { above, duration, integer, size, slow } from './kinds.ts'
import { type ValueOf, section, setting } from './items.ts'

export const LIMITS = section(
  'Limits on what clients send, for each worker. A client that exceeds a limit is refused and counted.',
  {
    hello_bytes: setting(
      size('4KiB', '1MiB'),
      '64KiB',
      'Maximum size of a ClientHello, including everything sent before it.',
      above(262_144, 'each new connection can use this much memory before its client is classified'),
    ),
    hello_timeout: setting(
      duration('10ms', '10m'),
      '5s',
      'Time limit for a complete ClientHello.',
      slow('silent connections'),
    ),
    handshake_timeout: setting(
      duration('10ms', '10m'),
      '10s',
      'Time limit for the rest of the TLS handshake.',
      slow('half-open handshakes'),
    ),
    request_line_bytes: setting(size('256B', '1MiB'), '16KiB', 'Maximum size of the request target (414).'),
    header_bytes: setting(
      size('1KiB', '1MiB'),
      '64KiB',
      'Maximum size of the request head (431).',
      above(262_144, 'each request can use this much memory before it is classified'),
    ),
    header_count: setting(
      integer(10, 10_000),
      200,
      'Maximum number of request headers (431).',
      above(1000, 'each header adds time to every rule that tests headers'),
    ),
    header_timeout: setting(
      duration('10ms', '10m'),
      '10s',
      'Time limit for a request head, and for the HTTP/2 preface.',
      slow('connections that send one byte at a time'),
    ),
    body_idle_timeout: setting(
      duration('10ms', '24h'),
      '60s',
      'How long a client may pause while it sends a request body.',
      slow('requests that never end', 600_000),
    ),
    answer_unread_timeout: setting(
      duration('10ms', '24h'),
      '2m',
      'How long a client may stop reading a response.',
      slow('responses that the client does not read', 600_000),
    ),
    keep_alive_timeout: setting(
      duration('10ms', '24h'),
      '75s',
      'How long a connection may be idle between requests.',
      slow('idle connections', 600_000),
    ),
    requests_per_connection: setting(
      integer(1, 1_000_000_000),
      10_000,
      'Maximum requests on one connection. Then it is closed, so that load is balanced again.',
    ),
    connections_max: setting(
      integer(1, 1_000_000),
      10_000,
      'Maximum open connections.',
      above(100_000, 'each uses about 20 to 50 KB and a file descriptor'),
    ),
    connections_per_address: setting(
      integer(1, 1_000_000),
      1000,
      'Maximum open connections from one address.',
    ),
    streams_per_connection: setting(
      integer(1, 10_000),
      128,
      'Maximum concurrent requests on one HTTP/2 connection.',
      above(1000, 'one connection can then run this many requests at once'),
    ),
    h2_reset_burst: setting(
      integer(1, 100_000),
      200,
      'How many HTTP/2 requests a client may reset in a burst. The same number of invalid frames is allowed for each connection.',
      above(1000, 'rapid resets cost the server more than the client (CVE-2023-44487)'),
    ),
    h2_reset_rate: setting(
      integer(1, 100_000),
      33,
      'The same, as a long-term rate per second.',
      above(1000, 'rapid resets cost the server more than the client (CVE-2023-44487)'),
    ),
    h2_session_memory: setting(
      size('1MiB', '1GiB'),
      '16MiB',
      'Maximum memory for one HTTP/2 connection with `http2: node`. Gatehouse itself keeps at most 1 MiB of request bodies for a connection, and for each stream the part of the answer that the app sent last, at most 256 KiB.',
      above(134_217_728, 'a few connections can then use all memory'),
    ),
    mcp_message_bytes: setting(
      size('4KiB', '64MiB'),
      '1MiB',
      'Maximum size of a message to an app that is an MCP server, if a rule asks for its call (413). See config/guide/mcp-apps.md.',
      above(16_777_216, 'a few slow clients can then use all of the 64 MiB for messages that arrive'),
    ),
    upgrade_idle_timeout: setting(duration('0', '24d'), 0, 'How long a WebSocket may be idle. 0: no limit.'),
  },
)

export interface LimitsConfig {
  readonly helloBytesMax: number
  readonly helloTimeoutMs: number
  readonly handshakeTimeoutMs: number
  readonly requestLineBytesMax: number
  readonly headerBytesMax: number
  readonly headerCountMax: number
  readonly headerTimeoutMs: number
  readonly bodyIdleTimeoutMs: number
  readonly answerUnreadTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  readonly requestsPerConnectionMax: number
  readonly connectionsMax: number
  readonly connectionsPerAddressMax: number
  readonly streamsPerConnectionMax: number
  readonly h2ResetBurst: number
  readonly h2ResetRate: number
  readonly h2SessionMemoryBytes: number
  readonly mcpMessageBytesMax: number
  readonly upgradeIdleTimeoutMs: number
}

export function limitsConfig(limits: ValueOf<typeof LIMITS>): LimitsConfig {
  return {
    helloBytesMax: limits.hello_bytes,
    helloTimeoutMs: limits.hello_timeout,
    handshakeTimeoutMs: limits.handshake_timeout,
    requestLineBytesMax: limits.request_line_bytes,
    headerBytesMax: limits.header_bytes,
    headerCountMax: limits.header_count,
    headerTimeoutMs: limits.header_timeout,
    bodyIdleTimeoutMs: limits.body_idle_timeout,
    answerUnreadTimeoutMs: limits.answer_unread_timeout,
    keepAliveTimeoutMs: limits.keep_alive_timeout,
    requestsPerConnectionMax: limits.requests_per_connection,
    connectionsMax: limits.connections_max,
    connectionsPerAddressMax: limits.connections_per_address,
    streamsPerConnectionMax: limits.streams_per_connection,
    h2ResetBurst: limits.h2_reset_burst,
    h2ResetRate: limits.h2_reset_rate,
    h2SessionMemoryBytes: limits.h2_session_memory,
    mcpMessageBytesMax: limits.mcp_message_bytes,
    upgradeIdleTimeoutMs: limits.upgrade_idle_timeout,
  }
}
