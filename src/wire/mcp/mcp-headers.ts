import { isFoldedName } from '../header-name.ts'
import { type McpReading, mcpRefusal } from './mcp-message.ts'

/**
 * Compares a message with the headers that repeat parts of it. Those who read only the headers must see the same as
 * the app, which reads the body. A header that is absent is not missed: earlier versions of the protocol have none.
 */
export function withMcpHeaders(reading: McpReading, rawHeaders: readonly string[]): McpReading {
  if (reading.kind === 'refused') return reading
  const wrong = mismatch(reading, rawHeaders)
  if (wrong === null) return reading
  const id = reading.kind === 'message' ? reading.id : null
  return mcpRefusal(HEADER_MISMATCH, `the header ${wrong} and the body disagree`, id)
}

function mismatch(reading: McpReading, rawHeaders: readonly string[]): string | null {
  const method = valueIn(rawHeaders, 'mcp-method')
  if (reading.kind !== 'message') return method === null ? null : 'Mcp-Method'
  if (method !== null && method !== asBytes(reading.method ?? '')) return 'Mcp-Method'
  const name = valueIn(rawHeaders, 'mcp-name')
  if (name !== null && reading.name !== null && !says(name, reading.name)) return 'Mcp-Name'
  const version = valueIn(rawHeaders, 'mcp-protocol-version')
  const isOther = version !== null && reading.version !== null && version !== asBytes(reading.version)
  return isOther ? 'MCP-Protocol-Version' : null
}

/** The value of a header, without blanks around it. One that is sent twice is one list, which no message matches. */
function valueIn(rawHeaders: readonly string[], name: string): string | null {
  let found: string | null = null
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (!isFoldedName(rawHeaders[i]!, name)) continue
    found = found === null ? rawHeaders[i + 1]! : `${found}, ${rawHeaders[i + 1]}`
  }
  return found === null ? null : found.replace(/^[ \t]+|[ \t]+$/g, '')
}

function says(value: string, name: string): boolean {
  if (!value.startsWith(ENCODED) || !value.endsWith(ENCODED_END)) return value === asBytes(name)
  const encoded = value.slice(ENCODED.length, -ENCODED_END.length)
  // Other spellings of the same bytes are invalid.
  return encoded === Buffer.from(name).toString('base64')
}

/** As in a header: one character per byte. */
function asBytes(text: string): string {
  return Buffer.from(text).toString('latin1')
}

/** Of the protocol, version 2026-07-28. */
const HEADER_MISMATCH = -32_020
const ENCODED = '=?base64?'
const ENCODED_END = '?='
