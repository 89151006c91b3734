import type { Sighting } from '../../plane/sighting.ts'
import { requestMessage } from './request-message.ts'

/** A log record in an OTLP message (JSON Protobuf encoding). */
export interface LogRecord {
  readonly timeUnixNano: string
  readonly severityNumber: number
  readonly severityText: string
  readonly eventName: string
  readonly body: { readonly stringValue: string }
  readonly attributes: readonly RecordAttribute[]
}

interface RecordAttribute {
  readonly key: string
  readonly value: RecordValue
}

type RecordValue =
  | { readonly stringValue: string }
  | { readonly doubleValue: number }
  | { readonly arrayValue: { readonly values: readonly { readonly stringValue: string }[] } }

/** A request as a log record, with the attributes that spans have. */
export function logRecord(sighting: Sighting): LogRecord {
  const { seen_at: _seenAt, ...members } = requestMessage(sighting)
  return {
    timeUnixNano: `${sighting.seenAtMs}000000`,
    severityNumber: INFO,
    severityText: 'INFO',
    eventName: 'gatehouse.request',
    body: { stringValue: `${sighting.method} ${sighting.path}`.toWellFormed() },
    attributes: Object.entries(members).flatMap(([name, given]) => {
      const value = recordValue(given)
      return value === null ? [] : [{ key: KEYS[name] ?? `gatehouse.${name}`, value }]
    }),
  }
}

/** `null`: there is nothing to say. */
function recordValue(given: unknown): RecordValue | null {
  if (typeof given === 'number') return { doubleValue: given }
  if (typeof given === 'string') return given === '' ? null : { stringValue: given.toWellFormed() }
  if (!Array.isArray(given) || given.length === 0) return null
  return { arrayValue: { values: given.map((each) => ({ stringValue: String(each).toWellFormed() })) } }
}

const INFO = 9
/** By the semantic conventions, and as in spans. */
const KEYS: Readonly<Record<string, string>> = {
  id: 'log.record.uid',
  method: 'http.request.method',
  host: 'server.address',
  path: 'url.path',
  address: 'client.address',
  user_agent: 'user_agent.original',
  agent_id: 'gatehouse.agent',
  agent_category: 'gatehouse.category',
  agent_purpose: 'gatehouse.purpose',
  software_id: 'gatehouse.software',
  campaign_id: 'gatehouse.campaign',
}
