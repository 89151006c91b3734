import { hostname } from 'node:os'
import type { EventRecord } from '../../../store/events/events.ts'
import type { LineOf } from './sink.ts'

/** An event as an RFC 5424 message, facility local0. Without a byte order mark: CEF parsers fail on one. */
export function syslogMessage(event: EventRecord, lineOf: LineOf): Buffer {
  const { type, atMs, severity } = event
  const priority = LOCAL0 * 8 + SEVERITIES[severity ?? 'none']
  const head = `<${priority}>1 ${new Date(atMs).toISOString()} ${HOST} gatehouse ${process.pid} ${type} -`
  return Buffer.from(`${head} ${lineOf(event)}`)
}

/** Prefixes the message length, for stream transports (RFC 6587 §3.4.1, RFC 5425 §4.3). */
export function framed(message: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${message.length} `), message])
}

const LOCAL0 = 16
/** RFC 5424 §6.2.1: critical, error, warning, notice. Events that are not threats are informational. */
const SEVERITIES = { critical: 2, high: 3, medium: 4, low: 5, none: 6 } as const
/** The HOSTNAME field allows only visible ASCII. */
const HOST =
  hostname()
    .replace(/[^!-~]/g, '')
    .slice(0, 255) || '-'
