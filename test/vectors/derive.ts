import { createHash } from 'node:crypto'
import type { FramingCase, HandshakeCase } from './cases/framing.ts'
import type { FramingVector } from './vector.ts'

/** The hashed forms of fingerprints written raw: the only step between what a table says and a vector. */
export function ja4Of(raw: string): string {
  const [a, ciphers, ...extensions] = raw.split('_')
  return `${a}_${h12(ciphers!)}_${h12(extensions.join('_'))}`
}

export function ja4sOf(raw: string): string {
  const [a, cipher, extensions] = raw.split('_')
  return `${a}_${cipher}_${h12(extensions!)}`
}

/** Its parts apart: names may have underscores in them. */
export function ja4hOf([a, names, cookieNames, cookiePairs]: readonly [
  string,
  string,
  string,
  string,
]): string {
  return `${a}_${h12(names)}_${h12(cookieNames)}_${h12(cookiePairs)}`
}

export function ja4xOf(raw: string): string {
  return raw.split('_').map(h12).join('_')
}

export function framingVector(framing: FramingCase, source: string): FramingVector {
  if (framing.kind === 'handshake') {
    const { kind: _, flights, said, ...cited } = framing
    return {
      ...cited,
      source,
      flights_hex: flights.map(([from, bytes]) => [from, Buffer.from(bytes).toString('hex')] as const),
      finding: said === null ? null : findingOf(said),
    }
  }
  const { kind: _, segments, first, ...cited } = framing
  const derive = framing.side === 'client' ? ja4Of : ja4sOf
  return {
    ...cited,
    source,
    stream_hex: segments.map((segment) => Buffer.from(segment).toString('hex')),
    fingerprint: typeof first === 'string' ? derive(first) : null,
    fault: typeof first === 'object' && first !== null ? first.fault : null,
  }
}

function findingOf(said: NonNullable<HandshakeCase['said']>) {
  return {
    ja4: ja4Of(said.ja4),
    ja4_later: (said.later ?? []).map(ja4Of),
    ja4s: said.ja4s === undefined ? null : ja4sOf(said.ja4s),
    ja4s_later: (said.ja4sLater ?? []).map(ja4sOf),
    hello_retry_request: said.retried ?? false,
    ja4x: (said.ja4x ?? []).map(ja4xOf),
    ja4x_client: (said.ja4xClient ?? []).map(ja4xOf),
  }
}

function h12(text: string): string {
  return text === '' ? '000000000000' : createHash('sha256').update(text).digest('hex').slice(0, 12)
}
