import type { RequestHead } from '../../wire/request-head.ts'

/** The headers of an HTTP/1 answer, adjusted to a body of this length. */
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

/** Bytes as text, so that they are written together with the head in one write. */
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

/**
 * If a request is answered before its body is complete, a body of at most this length is read to its end and
 * dropped. For a longer body the connection is closed.
 */
export const DISCARDED_BYTES_MAX = 65_536
/**
 * From this size on, bytes are passed to TLS without a copy: it encrypts them before the write returns, if no
 * other write is pending. Smaller pieces are copied, so that head, body and end become one write. Plain text
 * is always copied, because the socket keeps a reference to what the kernel does not take at once.
 */
export const TAKEN_BYTES_MIN = 16_384
export const JOINED_BYTES_MAX = 8192
