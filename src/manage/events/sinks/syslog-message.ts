import { hostname } from 'node:os'
import type { EventRecord } from '../../../store/events/events.ts'
import type { LineOf } from './sink.ts'

/** An event as a message of RFC 5424, of the facility local0. Without a byte order mark, which readers of CEF stumble on. */
export function syslogMessage(event: EventRecord, lineOf: LineOf): Buffer {
  const { type, atMs, severity } = event
  const priority = LOCAL0 * 8 + SEVERITIES[severity ?? 'none']
  const head = `<${priority}>1 ${new Date(atMs).toISOString()} ${HOST} gatehouse ${process.pid} ${type} -`
  return Buffer.from(`${head} ${lineOf(event)}`)
}

/** With its length in front, for connections (RFC 6587 §3.4.1, RFC 5425 §4.3). */
export function framed(message: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${message.length} `), message])
}

const LOCAL0 = 16
/** RFC 5424 §6.2.1: critical, error, warning, notice; what is no threat is informational. */
const SEVERITIES = { critical: 2, high: 3, medium: 4, low: 5, none: 6 } as const
/** What is no visible ASCII cannot stand there. */
const HOST =
  hostname()
    .replace(/[^!-~]/g, '')
    .slice(0, 255) || '-'
