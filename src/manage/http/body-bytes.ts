import type { IncomingMessage } from 'node:http'
import { Refusal } from './refusal.ts'

/**
 * Reads a whole uncompressed body. Returns the bytes at once if they have all arrived. Throws a Refusal, or
 * rejects with it, if the body is longer than `bytesMax` or cut off.
 */
export function readBytes(request: IncomingMessage, bytesMax: number): Promise<Buffer> | Buffer {
  if (!isThere(request)) return arriving(request, bytesMax)
  const bytes = (request.read() as Buffer | null) ?? NOTHING
  if (bytes.length > bytesMax) throw tooLarge(bytesMax)
  return bytes
}

/**
 * Node sets `complete` only after the listeners for the last byte have run, so compare Content-Length too.
 */
function isThere({ complete, headers, readableLength }: IncomingMessage): boolean {
  return complete || readableLength === Number(headers['content-length'])
}

function arriving(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const leave = () => request.off('data', add).off('end', end).off('error', cut).off('close', cut)
    const refuse = (refusal: Refusal) => {
      leave()
      // Drain the rest, so that a client that is still sending can read the answer before the request
      // timeout.
      request.on('error', () => undefined).resume()
      reject(refusal)
    }
    const add = (chunk: Buffer) => {
      length += chunk.length
      if (length > bytesMax) refuse(tooLarge(bytesMax))
      else chunks.push(chunk)
    }
    const end = () => {
      leave()
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length))
    }
    const cut = () => refuse(new Refusal('invalid_request', 'the body is damaged or incomplete'))
    // A destroyed request emits no more events.
    if (request.destroyed) return cut()
    request.on('data', add).on('end', end).on('error', cut).on('close', cut)
  })
}

function tooLarge(bytesMax: number): Refusal {
  return new Refusal('too_large', `the body is larger than ${bytesMax} bytes`)
}

const NOTHING = Buffer.alloc(0)
