import type { IncomingMessage } from 'node:http'
import { Refusal } from './refusal.ts'

/**
 * The bytes of a body that is not compressed, whole, at once where they are there. Throws a Refusal, or rejects with it, at
 * more than `bytesMax`, and at one that is cut off.
 */
export function readBytes(request: IncomingMessage, bytesMax: number): Promise<Buffer> | Buffer {
  if (!isThere(request)) return arriving(request, bytesMax)
  const bytes = (request.read() as Buffer | null) ?? NOTHING
  if (bytes.length > bytesMax) throw tooLarge(bytesMax)
  return bytes
}

/** Node says of a request that it is complete only after those who wait for its last byte have had their turn. */
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
      // Whoever sends more than is taken reads the answer all the same, until the time of the request is up.
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
    const cut = () => refuse(new Refusal('invalid_request', 'the body is damaged, or was cut off'))
    // Of what is over, nothing more is heard.
    if (request.destroyed) return cut()
    request.on('data', add).on('end', end).on('error', cut).on('close', cut)
  })
}

function tooLarge(bytesMax: number): Refusal {
  return new Refusal('too_large', `the body may have ${bytesMax} bytes`)
}

const NOTHING = Buffer.alloc(0)
