/** The shown part of an `analyze_capture` result. */
export interface ShownAnalysis {
  readonly format: string | null
  readonly frames: number
  readonly fault: { readonly offset: number; readonly detail: string } | null
  readonly found: number
  readonly findings: readonly ShownFinding[]
  /** Known owner of each fingerprint. */
  readonly owners: ReadonlyMap<string, string>
}

export interface ShownFinding {
  readonly kind: string
  readonly frame: number
  readonly from: string
  readonly to: string
  /** The requested name or path. */
  readonly asked: string
  readonly type: 'ja4' | 'ja4h'
  readonly fingerprint: string
}

export function analysisIn(value: unknown): ShownAnalysis {
  const { format, frames, fault, found, findings, fingerprints } = record(value)
  const broken = fault === null || fault === undefined ? null : record(fault)
  return {
    format: textOrNull(format),
    frames: Number(frames ?? 0),
    fault:
      broken === null
        ? null
        : { offset: Number(broken['offset']), detail: textOrNull(broken['detail']) ?? '' },
    found: Number(found ?? 0),
    findings: list(findings).map(findingIn),
    owners: new Map(
      list(fingerprints).map((each) => {
        const names = list(each['owners']).map(({ name }) => textOrNull(name) ?? '')
        const isExact = each['known'] === 'exact'
        return [
          textOrNull(each['fingerprint']) ?? '',
          `${isExact || names.length === 0 ? '' : 'similar to '}${names.join(', ')}`,
        ]
      }),
    ),
  }
}

function findingIn(each: Readonly<Record<string, unknown>>): ShownFinding {
  const isRequest = each['kind'] === 'http'
  const type = isRequest ? 'ja4h' : 'ja4'
  const host = textOrNull(each['sni']) ?? ''
  return {
    kind: isRequest ? `${textOrNull(each['method']) ?? ''} (${textOrNull(each['http']) ?? 'HTTP'})` : 'TLS',
    frame: Number(each['frame'] ?? 0),
    from: `${textOrNull(each['src']) ?? ''}:${each['src_port'] ?? ''}`,
    to: `${textOrNull(each['dst']) ?? ''}:${each['dst_port'] ?? ''}`,
    asked: isRequest ? (textOrNull(each['path']) ?? '') : host,
    type,
    fingerprint: textOrNull(each[type]) ?? '',
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function list(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map(record) : []
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
