/** The trace of a request (W3C Trace Context). */
export interface TraceContext {
  readonly traceId: string
  /** The id of the caller's span. */
  readonly spanId: string
  readonly isSampled: boolean
}

/** `null` if there is no valid one. A new trace then begins (§3.2). */
export function traceContextIn(headers: readonly string[]): TraceContext | null {
  let said: string | null = null
  for (let i = 0; i < headers.length; i += 2) {
    if (!isNamed(headers[i]!, TRACEPARENT)) continue
    if (said !== null) return null
    said = headers[i + 1]!
  }
  return said === null ? null : parseTraceparent(said)
}

/** A later version may have more fields, which are ignored (§4.3). */
export function parseTraceparent(text: string): TraceContext | null {
  const [, version, traceId, spanId, flags, more] = FORM.exec(text) ?? []
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined)
    return null
  if (version === 'ff' || (version === '00' && more !== undefined)) return null
  if (traceId === NO_TRACE || spanId === NO_SPAN) return null
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 }
}

/** Replaces the client's trace context by ours. Keeps `tracestate` only if the trace goes on. */
export function putTraceContext(
  headers: string[],
  { traceId, spanId, isSampled }: TraceContext,
  goesOn: boolean,
): void {
  let to = 0
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    if (isNamed(name, TRACEPARENT) || (!goesOn && isNamed(name, TRACESTATE))) continue
    headers[to++] = name
    headers[to++] = headers[i + 1]!
  }
  headers.length = to
  headers.push(TRACEPARENT, `00-${traceId}-${spanId}-0${isSampled ? 1 : 0}`)
}

function isNamed(name: string, lower: string): boolean {
  return name.length === lower.length && name.toLowerCase() === lower
}

const TRACEPARENT = 'traceparent'
const TRACESTATE = 'tracestate'
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const NO_TRACE = '0'.repeat(32)
const NO_SPAN = '0'.repeat(16)
const SAMPLED = 1
