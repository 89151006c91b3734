import type { RequestHead } from '../../wire/request-head.ts'

/** The headers of an answer as they may stand before a body of this length, in HTTP/1. */
export function framedHeaders(
  asked: RequestHead,
  status: number,
  headers: readonly string[],
  bodyLength: number | null,
): string[] {
  const isChunked = bodyLength === null && asked.version !== '10'
  const mayHaveLength = status !== 204
  let hasLength = false
  let isClean = true
  for (let i = 0; i < headers.length; i += 2) {
    const length = headers[i]!.length
    if (length === 14 && isContentLength(headers[i]!)) {
      hasLength = true
      if (!mayHaveLength) isClean = false
    } else if (length === 7 && !isChunked && isTrailer(headers[i]!)) isClean = false
  }
  const list = isClean ? (headers as string[]) : without(headers, mayHaveLength)
  const wantsLength =
    bodyLength === 0 && !hasLength && mayHaveLength && status !== 304 && asked.method !== 'HEAD'
  return wantsLength ? [...list, 'Content-Length', '0'] : list
}

/** Bytes as a text that is written with a head: one write instead of a list of them. */
export function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
}

function without(headers: readonly string[], keepLength: boolean): string[] {
  const kept: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    if (isTrailer(name) || (!keepLength && isContentLength(name))) continue
    kept.push(name, headers[i + 1]!)
  }
  return kept
}

function isContentLength(name: string): boolean {
  return name === 'Content-Length' || name.toLowerCase() === 'content-length'
}

function isTrailer(name: string): boolean {
  return name.length === 7 && name.toLowerCase() === 'trailer'
}

/** A body that is answered before it is whole is read to its end and dropped if it is no longer than this; else the connection is not worth it. */
export const DISCARDED_BYTES_MAX = 65_536
/**
 * From here on it pays to hand bytes to TLS where they are, which encrypts them before the write returns if nothing is
 * under way; smaller ones are copied, so that head, body and end become one write. Never in plain text, where what the
 * kernel does not take at once stays referred to.
 */
export const TAKEN_BYTES_MIN = 16_384
export const JOINED_BYTES_MAX = 8192
